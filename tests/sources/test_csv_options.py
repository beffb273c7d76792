"""CSV with comments, lines before the header, and blanks around fields."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.damage import DamagedObjectError
from headrace.testing.format_suite import (
    LIMITS,
    Found,
    check_passing_over,
    check_ranges,
    check_resume,
    pieces_of,
    reader_of,
    records_of,
)
from project.sampling import drawn

COMMENTED = CsvDialect(comment="#")
TRIMMED = CsvDialect(trim=True)
SKIPPING = CsvDialect(skip_lines=2)


def values(dialect: CsvDialect, content: bytes) -> list[object]:
    """What is read, bad rows as their reasons."""
    return [
        list(json.loads(str(each.value)).values()) if isinstance(each, Found) else each.reason
        for each in pieces_of(reader_of(csv_format(dialect), content))
    ]


FIELD = some.text('ab#," \n', max_size=5)
ROWS = some.lists(some.lists(FIELD, min_size=2, max_size=2), max_size=8)
COMMENTS = some.lists(
    some.sampled_from(["", "#\n", '# it"s\n', '#"a,\n', "#\\\n", "##\r\n"]), min_size=9
)
ESCAPES = some.sampled_from(["", "\\"])


def written(row: list[str], **options: str) -> str:
    """A row, all of its fields quoted."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n", **options).writerow(row)  # pyright: ignore[reportArgumentType]
    return out.getvalue()


@settings(max_examples=drawn(150), deadline=None)
@given(rows=ROWS, comments=COMMENTS, escape=ESCAPES, chunk=some.integers(1, 40))
def test_comments_between_rows_do_not_show(
    rows: list[list[str]], comments: list[str], escape: str, chunk: int
):
    """Wherever they stand and whatever is in them, quotes without a partner, too; rows are none for what quotes hold."""
    dialect = replace(COMMENTED, escape=escape)
    lines = [written(row) for row in [["x", "y"], *rows]]
    content = "".join(f"{comment}{line}" for comment, line in zip(comments, lines, strict=False))
    form, limits = csv_format(dialect), replace(LIMITS, chunk_bytes=chunk)

    found = records_of(reader_of(form, content.encode(), limits=limits))

    assert rows == [list(json.loads(str(each.value)).values()) for each in found]
    assert list(range(1, len(rows) + 1)) == [each.place.record_count for each in found]
    check_resume(form, content.encode(), rows=(1, 1000))


@pytest.mark.parametrize("first", [b"1#", b'"#1"', b" #1", b""])
def test_only_what_begins_a_line_is_a_comment(first: bytes):
    """And not what is behind it, inside quotes, or in a field."""
    content = b"a,b\n" + first + b',"x\n#y"\n'

    ((a, b),) = [list(row) for row in values(COMMENTED, content) if isinstance(row, list)]

    assert (first.decode().strip('"'), "x\n#y") == (a, b)


def test_a_comment_tells_no_types_and_no_names():
    """Neither before the header nor in the sample."""
    content = b"# made by\n\n#\nn\n#x\n1\n"

    assert [[1]] == values(replace(COMMENTED, infer=True), content)


def test_a_comment_may_hold_what_no_row_may():
    """Bytes that are not UTF-8, NUL, any number of delimiters."""
    content = b"a,b\n#\xff\0,,,,\n1,2\n"

    assert [["1", "2"]] == values(COMMENTED, content)


def test_comments_are_in_any_range():
    """A file that can be split can be, with them, too."""
    dialect = CsvDialect(quote="", header=False, names=("a",), comment="#")
    content = b"#x\n" + b"".join(b"%d\n# %d\n" % (row, row) for row in range(20))

    for size in (3, 7, 11):
        check_ranges(csv_format(dialect), content, range(0, len(content), size))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("infer", [False, True])
def test_lines_before_the_header_are_left_out(mark: bytes, end: bytes, infer: bool):  # noqa: FBT001
    """Whatever is in them, once for each file, and not where reading goes on."""
    content = mark + b'Report "x\n\xff,,' + end + b"n" + end + b"1" + end + b"2" + end + b"3"
    form = csv_format(replace(SKIPPING, infer=infer))

    assert ([[1], [2], [3]] if infer else [["1"], ["2"], ["3"]]) == values(
        replace(SKIPPING, infer=infer), content
    )
    assert 3 == check_resume(form, content, rows=(1, 2))


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\nb", b"a\nb\r\n", b""])
def test_nothing_behind_these_lines_is_no_record(content: bytes):
    """Nor is a file that is empty."""
    assert [] == values(SKIPPING, content)


def test_a_file_with_fewer_lines_is_an_error():
    """It is not what the settings say."""
    with pytest.raises(
        DamagedObjectError, match=r"byte 0 .*ends before the 2 lines that csv\.skip\.lines"
    ):
        values(SKIPPING, b"a\n")


@pytest.mark.parametrize("chunk", [4, 1 << 16])
@pytest.mark.parametrize(("length", "is_read"), [(27, True), (28, False)])
def test_these_lines_are_not_held_in_memory_without_a_limit(
    chunk: int,
    length: int,
    is_read: bool,  # noqa: FBT001
):
    """It is that of a row, whatever the size of blocks; a line end does not count."""
    limits = replace(LIMITS, record_bytes=30, chunk_bytes=chunk)
    reader = reader_of(
        csv_format(SKIPPING), b"a\r\n" + b"x" * length + b"\r\nn\n1\n", limits=limits
    )

    if is_read:
        assert 1 == len(records_of(reader))
        return
    with pytest.raises(
        DamagedObjectError, match=r"What csv\.skip\.lines leaves out is longer than 30"
    ):
        records_of(reader)


def test_while_a_file_grows_its_first_lines_are_waited_for():
    """And the header behind them, from where reading stopped."""
    form, growing = csv_format(SKIPPING), Span(take_tail=False)

    few = reader_of(form, b"a\n", span=growing)
    assert [] == records_of(few)
    assert 0 == few.place.anchor
    none = reader_of(form, b"a\nb\n\n", span=growing)
    assert [] == records_of(none)
    place, constants = none.place, none.constants()
    rest = reader_of(form, b"a\nb\n\nn\n1\n", span=Span(start=5), resume=place, constants=constants)

    assert Resume(anchor=5) == place
    assert ['{"n":"1"}'] == [each.value for each in records_of(rest)]


@pytest.mark.parametrize("names", [(), ("m",)])
@pytest.mark.parametrize("infer", [False, True])
def test_a_header_is_met_behind_comments_that_came_first(names: tuple[str, ...], infer: bool):  # noqa: FBT001
    """Also when its file grew between them."""
    form = csv_format(replace(COMMENTED, names=names, infer=infer))
    before = reader_of(form, b"# c\n", span=Span(take_tail=False))
    assert [] == records_of(before)

    rest = reader_of(
        form, b"# c\nn\n1\n", resume=before.place, constants=before.constants(), span=Span(start=4)
    )

    (found,) = [json.loads(str(each.value)) for each in records_of(rest)]
    assert {names[0] if names else "n": 1 if infer else "1"} == found


BLANK = some.text(" \t", max_size=3)
PLAIN = some.text("ab\u00fc", max_size=3)


@settings(max_examples=drawn(150), deadline=None)
@given(
    rows=some.lists(some.tuples(FIELD, PLAIN, FIELD), max_size=6),
    blanks=some.lists(BLANK, min_size=42),
    escape=ESCAPES,
)
def test_blanks_around_fields_do_not_show(
    rows: list[tuple[str, str, str]], blanks: list[str], escape: str
):
    """Around quotes neither; those inside them stay, and so do the other characters of a bare field."""
    around = iter(blanks)
    lines = [
        ",".join(
            f"{next(around)}{text}{next(around)}" for text in (_quoted(one), two, _quoted(three))
        )
        for one, two, three in [("x", "y", "z"), *rows]
    ]

    found = values(replace(TRIMMED, escape=escape), "\n".join(lines).encode())

    assert [list(row) for row in rows] == found


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"'


@pytest.mark.parametrize("escape", ["", "\\"])
@pytest.mark.parametrize(
    ("row", "fields"),
    [
        (' a b ,\t"c, d"  ', ["a b", "c, d"]),
        ('"  a ", ', ["  a ", ""]),
        ('a "b", c', ['a "b"', "c"]),
        (" , ", ["", ""]),
    ],
)
def test_trimmed_fields(escape: str, row: str, fields: list[str]):
    """By the quick way and by the careful one."""
    assert [fields] == values(replace(TRIMMED, escape=escape), f"x , y\n\n \t\n{row}\r\n".encode())


def test_an_escaped_blank_is_part_of_its_field():
    """Of escape characters in a row, an odd last one is that of what follows."""
    content = b"x,y\na\\ ,b\\\\ \n\\ c,d\\  \n"

    assert [["a ", "b\\"], [" c", "d "]] == values(replace(TRIMMED, escape="\\"), content)


def test_a_tab_that_delimits_is_no_blank():
    """Nor is any other character that has a meaning."""
    assert [["", "a", ""]] == values(replace(TRIMMED, delimiter="\t"), b"x\ty\tz\n\t a \t \n")


@pytest.mark.parametrize("delimiter", ["]", "^", "|", "-"])
@pytest.mark.parametrize("quote", ["", "'", "*"])
@pytest.mark.parametrize("escape", ["", "\\", "."])
def test_any_characters_may_have_the_meanings(delimiter: str, quote: str, escape: str):
    """By both ways: the row behind has a quote where it should not."""
    dialect = replace(TRIMMED, delimiter=delimiter, quote=quote, escape=escape)
    first = f" {quote} x {quote} {delimiter} y "
    expected = [" x " if quote else "x", "y"]

    for more in ("", f"a'*b{delimiter}\n"):
        content = f"x{delimiter}y\n{first}\n{more}"
        assert expected == values(dialect, content.encode())[0]


def test_names_are_trimmed():
    """Those of the header, in quotes or not."""
    (found,) = records_of(reader_of(csv_format(TRIMMED), b' x ,  "y "\n1,2\n'))

    assert '{"x":"1","y ":"2"}' == found.value


def test_a_long_run_of_blanks_costs_no_more_than_its_length():
    """By the careful way, too, which an escape character asks for."""
    for blanks in (b" " * 400_000, b' ""' * 150_000):
        dialect = replace(TRIMMED, escape="\\", header=False, names=("a", "b"))
        assert 1 == len(values(dialect, b"x" + blanks + b"y," + blanks + b"\n"))


OPTIONS = some.builds(
    CsvDialect,
    comment=some.sampled_from(["", "#"]),
    skip_lines=some.integers(0, 2),
    trim=some.booleans(),
    escape=ESCAPES,
    infer=some.booleans(),
)
CELL = some.sampled_from(["", "1", " 2", "#", '"a\n,"', ' "#" ', "x ", '"'])


@settings(max_examples=drawn(100), deadline=None)
@given(rows=some.lists(some.lists(CELL, min_size=1, max_size=3), max_size=6), dialect=OPTIONS)
def test_any_rows_are_gone_on_with_behind_each_of_them(rows: list[list[str]], dialect: CsvDialect):
    """Good and bad ones, whatever the settings; what is told of bad ones is the file's own bytes."""
    lines = ["#", "#"][: dialect.skip_lines] + ["a,b"] + [",".join(row) for row in rows]
    content = "".join(line + "\n" for line in lines).encode()
    form = csv_format(dialect)

    try:
        pieces = check_passing_over(form, content, rows=(1, 3))
    except DamagedObjectError:
        return
    for piece in pieces:
        if not isinstance(piece, Found):
            assert piece.record.raw is not None
            assert piece.record.raw in content


@pytest.mark.parametrize(
    "other",
    [
        CsvDialect(comment="#"),
        CsvDialect(comment=";"),
        CsvDialect(skip_lines=1),
        CsvDialect(trim=True),
    ],
)
def test_another_dialect_is_another_format(other: CsvDialect):
    """So that a file does not go on under it in its middle."""
    assert CsvDialect().signature() != other.signature()
    assert COMMENTED.signature() != replace(COMMENTED, comment=";").signature()
