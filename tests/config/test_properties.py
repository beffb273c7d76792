"""Properties files as Java reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.properties_file import parsed_properties


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=b", {"a": "b"}),
        (b"a:b\na b", {"a": "b"}),
        (b"  a \t=\f b  ", {"a": "b  "}),
        (b"a==b", {"a": "=b"}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"=b", {"": "b"}),
        (b"# a=b\n ! c=d\n\n \t\n", {}),
        (b"a=1\ra=2\r\nb=3", {"a": "2", "b": "3"}),
        (b"a=b,\\\n   c", {"a": "b,c"}),
        (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        (b"a=b\\\n# no comment", {"a": "b# no comment"}),
        (b"# no continuation \\\na=b", {"a": "b"}),
        (b"a=b\\", {"a": "b"}),
        (b"a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        (b"\\\n\n# c=d\n\\\na=b", {"a": "b"}),
        (b"a\\ b\\:c\\=d = e", {"a b:c=d": "e"}),
        (b"a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        (b"a=\\u00e9\\u2603\\uD83D\\uDE00", {"a": "é☃😀"}),
        (b"a=\xe9", {"a": "é"}),
    ],
)
def test_lines_mean_what_they_mean_in_java(content: bytes, expected: dict[str, str]):
    """Separators, comments, continued lines, escapes and the character set are Java's."""
    assert expected == parsed_properties(content)


@pytest.mark.parametrize("content", [b"a=\\u12", b"a=\\u12g4", b"\\u=b"])
def test_malformed_escapes_are_refused(content: bytes):
    """The sentence is Java's."""
    with pytest.raises(ValueError, match=r"Malformed \\uxxxx encoding\."):
        parsed_properties(content)


def _written(text: str) -> str:
    """*text* as ``java.util.Properties.store`` writes a key; good for values, too."""
    escapes = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    escapes |= {each: f"\\{each}" for each in "\\ =:#!"}
    units = text.encode("utf-16-be")
    pairs = [chr(units[at] * 256 + units[at + 1]) for at in range(0, len(units), 2)]
    return "".join(
        escapes.get(unit, unit if " " < unit < "\x7f" else f"\\u{ord(unit):04X}") for unit in pairs
    )


@given(st.dictionaries(st.text(), st.text()))
def test_what_java_stores_is_read_back(entries: dict[str, str]):
    """Every key and value survives a properties file."""
    lines = (f"{_written(key)}={_written(value)}\n" for key, value in entries.items())
    assert entries == parsed_properties("".join(lines).encode("ascii"))


@given(st.text(alphabet="ab=: \t\\\n\r#u0\x0c", max_size=30))
def test_any_content_is_read_or_refused(text: str):
    """Nothing but the one error that Java has, too, comes out of any file."""
    try:
        parsed_properties(text.encode())
    except ValueError as error:
        assert "Malformed \\uxxxx encoding." == str(error)  # noqa: PT017 (most texts raise nothing)
