"""Text that is not UTF-8: one byte per character, decoded a block at a time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.formats.by_name import FORMATS, FormatOptions
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.damage import DamagedObjectError
from headrace.formats.format import Format
from headrace.formats.text_encoding import encoding_named
from headrace.testing.format_suite import (
    Found,
    Piece,
    check_passing_over,
    check_ranges,
    check_resume,
    pieces_of,
    reader_of,
    records_of,
)
from project.sampling import drawn

PLAIN = CsvDialect()
INFERRING = CsvDialect(infer=True)
SINGLE = ["iso-8859-1", "windows-1252", "windows-1251", "koi8-r", "cp437", "tis-620", "ascii"]


def form(name: str, encoding: str, dialect: CsvDialect = PLAIN) -> Format:
    """The format *name* of files in *encoding*."""
    return FORMATS[name](FormatOptions(encoding=encoding_named(encoding), dialect=dialect))


def passed(name: str, encoding: str, content: bytes) -> list[Piece]:
    """What is read, with reading gone on behind all of it."""
    return check_passing_over(form(name, encoding), content)


@pytest.mark.parametrize("encoding", SINGLE)
@settings(max_examples=drawn(40), deadline=None)
@given(content=some.binary(max_size=60))
def test_lines_are_what_python_decodes(encoding: str, content: bytes):
    """Each line for itself; one that cannot be is bad, and its bytes are the file's own."""
    expected = list[object]()
    for line in content.removesuffix(b"\n").split(b"\n") if content else []:
        bare = line.removesuffix(b"\r")
        try:
            expected.append(bare.decode(encoding))
        except UnicodeDecodeError:
            expected.append(bare)

    try:
        found = passed("lines", encoding, content)
    except DamagedObjectError:
        assert content.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
        return
    assert expected == [
        each.value if isinstance(each, Found) else each.record.raw for each in found
    ]


@settings(max_examples=drawn(60), deadline=None)
@given(
    rows=some.lists(
        some.lists(some.text('a€üÿ," \n', max_size=5), min_size=2, max_size=2), max_size=6
    )
)
def test_csv_and_json_are_what_their_utf8_would_be(rows: list[list[str]]):
    """Quoted line ends included; positions are those of the file's own bytes."""
    quoted = [[f'"{text.replace(chr(34), chr(34) * 2)}"' for text in row] for row in rows]
    texts = {
        "csv": "".join(",".join(row) + "\n" for row in [["é", "b"], *quoted]),
        "jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    }
    for name, text in texts.items():
        content = text.encode("windows-1252")
        plain = records_of(reader_of(form(name, "utf-8"), text.encode()))
        found = records_of(reader_of(form(name, "windows-1252"), content))

        assert [each.value for each in plain] == [each.value for each in found]
        ends = [len(text.encode()[: each.place.anchor].decode()) for each in plain]
        assert ends == [each.place.anchor for each in found]
        check_resume(form(name, "windows-1252"), content, rows=(1, 1000))


@pytest.mark.parametrize("name", ["lines", "jsonl", "csv"])
def test_a_byte_that_is_no_character_makes_a_bad_record(name: str):
    """Told with its place in the file; reading goes on behind it."""
    content = b'"\xfc"\n"\xfc"\n"\xfc\x81"\n"\xfc"\n'

    bad = [each for each in passed(name, "windows-1252", content) if not isinstance(each, Found)]

    (error,) = bad
    assert b'"\xfc\x81"' == error.record.raw
    assert (
        f"an object, byte 8 (record {2 if name == 'csv' else 3}): Byte 10 is 0x81, which is no "
        "character of cp1252. Correct the file, or set files.encoding to what it is written in."
    ) == str(error)


def test_a_header_that_cannot_be_read_is_damage():
    """Nothing behind it is understood."""
    with pytest.raises(DamagedObjectError, match="Byte 1 is 0x81, which is no character of cp1252"):
        pieces_of(reader_of(form("csv", "windows-1252"), b"a\x81\n1\n"))


def test_types_are_told_by_decoded_text():
    """Names and values of the sample are those of the records; what cannot be decoded tells nothing."""
    content = b"n\xfc,s\n1,\xfc\n\x81,x\n2,y\n"

    found = [
        json.loads(str(each.value))
        for each in pieces_of(reader_of(form("csv", "windows-1252", INFERRING), content))
        if isinstance(each, Found)
    ]

    assert [{"nü": 1, "s": "ü"}, {"nü": 2, "s": "y"}] == found


@pytest.mark.parametrize("size", [3, 5, 8])
def test_ranges_are_of_the_files_bytes(size: int):
    """Lines of which each byte becomes three."""
    content = "".join(f"{'ก' * row}\n" for row in range(12)).encode("tis-620")

    check_ranges(form("lines", "tis-620"), content, range(0, len(content), size))


@pytest.mark.parametrize(
    ("mark", "told"),
    [(b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")],
)
def test_a_mark_of_another_encoding_is_an_error(mark: bytes, told: str):
    """Taken for text, the whole file would be read wrongly."""
    with pytest.raises(
        DamagedObjectError, match=rf"says {told}.*, but files\.encoding says cp1252"
    ):
        pieces_of(reader_of(form("lines", "windows-1252"), mark + b"a\n"))


WIDE = ["utf-16", "utf-16-le", "utf-32", "utf-7", "gbk", "shift_jis", "iso2022_jp", "punycode"]
ODD = ["cp037", "rot13", "hex", "idna", "unicode_escape", "undefined"]


@pytest.mark.parametrize("name", [*WIDE, *ODD])
def test_other_encodings_are_refused(name: str):
    """With the advice to convert the files from that one."""
    with pytest.raises(ValueError, match=rf"is not read: .* with iconv -f {name} -t UTF-8\."):
        encoding_named(name)


@pytest.mark.parametrize("name", ["none", "iso-8859-99", "a\0b"])
def test_a_name_of_no_encoding_is_to_be_corrected(name: str):
    """Nothing can be converted from it."""
    with pytest.raises(ValueError, match=r"no encoding that is known\. Correct the name"):
        encoding_named(name)


def test_names_of_one_encoding_are_one_format():
    """And another encoding is another one, under which a file does not go on; UTF-8 is what it was."""
    signatures = [form("jsonl", each).signature() for each in ("latin-1", "ISO-8859-1", "l1")]

    assert ["jsonl iso8859-1"] * 3 == signatures
    assert "jsonl cp1252" == form("jsonl", "windows-1252").signature()
    assert ["jsonl", "lines"] == [form(each, "UTF8").signature() for each in ("jsonl", "lines")]
    assert form("csv", "utf-8").signature() != form("csv", "latin-1").signature()
