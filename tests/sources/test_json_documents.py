"""JSON lines that all begin and end as objects do: read together, and each is a document or the first bad one is named."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.formats.jsonl import JsonLinesExtractor
from headrace.formats.line_framing import LineFraming
from headrace.formats.row_extractor import Extracted
from project.sampling import drawn

PIECES = [b"{", b"}", b"[", b"]", b"{}", b'{"a":', b'"b":1', b'"', b",", b":", b" ", b"\\"]


def extracted(rows: list[bytes]) -> Extracted:
    """What becomes of *rows*, which have a buffer of their own."""
    buffer = np.frombuffer(b"".join(row + b"\n" for row in rows), np.uint8)
    return JsonLinesExtractor().extract(LineFraming().cut(buffer, base=0, final=True))


def is_document(row: bytes) -> bool:
    """Whether *row* alone is one."""
    try:
        msgspec.json.decode(row)
    except msgspec.DecodeError:
        return False
    return True


@settings(max_examples=drawn(600), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(PIECES), max_size=5).map(lambda each: b"{%b}" % b"".join(each)),
        min_size=1,
        max_size=4,
    )
)
def test_a_document_is_one_row_and_a_row_one_document(rows: list[bytes]) -> None:
    """Whatever rows make together with those around them."""
    bad = next((at for at, row in enumerate(rows) if not is_document(row)), None)

    found = extracted(rows)

    assert rows[:bad] == [each.encode() for each in found.values.to_pylist()]
    assert bad == (found.bad and found.bad.row)


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"a":1}{"b":2}', b"{}"],
        [b'{"a":[{}', b"{}]}"],
        [b'{"a":[{},{}', b"{}]}", b"{}{}"],
        [b'{"a":"}', b'{"}'],
        [b'{"a":{}', b"{},{}}"],
        [b'{"a":1}{"b":', b"2}"],
        [b'{"a":1}{"b":2,', b'"c":3}'],
        [b"{}[{},", b"{}]"],
        [b'{"a":1}{"b":[', b"{}]}"],
        [b'{"a":1}{"b":{}', b',"c":2}'],
        [b"[{}", b",{}]{}"],
    ],
)
def test_documents_over_several_rows_are_none(rows: list[bytes]) -> None:
    """Also if there are as many as rows."""
    found = extracted(rows)

    assert found.bad is not None
    assert 0 == found.bad.row


@pytest.mark.parametrize("between", [b"\n", b"\r\n", b"\n\n", b"\r\n \r\n", b"\n\r\n"])
def test_ends_of_lines_and_blank_ones_are_no_part_of_documents(between: bytes) -> None:
    """They are looked at together with the rows."""
    rows = [b'{"a":1}', b"{}", b'{"b":[{}]}']
    buffer = np.frombuffer(between.join([*rows, b""]), np.uint8)

    found = JsonLinesExtractor().extract(LineFraming().cut(buffer, base=0, final=True))

    assert (rows, None) == ([each.encode() for each in found.values.to_pylist()], found.bad)


@pytest.mark.parametrize(
    "text", ['{"a":"ü"}', '{"ü":1}', '{"a":"\\ud800"}', '{"a":"\\ud83d\\ude00"}'], ids=ascii
)
def test_text_is_kept(text: str) -> None:
    """Also halves of pairs, which JSON's grammar allows."""
    found = extracted([b"{}", text.encode(), b"{}"])

    assert (["{}", text, "{}"], None) == (found.values.to_pylist(), found.bad)


@pytest.mark.parametrize("row", [b'{"a":"\xff"}', b'{"\xff":1}', b'{"a":"\xc3"}'])
def test_what_is_not_utf8_is_bad(row: bytes) -> None:
    """The decoder does not look at it."""
    found = extracted([b"{}", row, b"{}"])

    assert ["{}"] == found.values.to_pylist()
    assert found.bad is not None
    assert "which is not UTF-8 here" in found.bad.reason
