"""The files that both workers read: text as no one would write it, but somebody sends it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judges.chains import File

_AWKWARD = [
    "plain",
    "",
    "  blanks around  ",
    "\ttab\tin\tit",
    "ünïcödé ж 漢字 🚀",
    "e\u0301 o\u0308\u0304 combining",
    "\u200bzero\u200dwidth\ufeff",
    "\u2028 \u2029 \x85 \x0b \x0c \x1c",
    "\x00\x01\x1f\x7f\x80\x9f",
    "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    '"',
    "'",
    '"open',
    'close"',
    "\\",
    '\\" \\n \\u0041',
    '{"a":1,"b":[1,2,{"c":null}]}',
    '{"a":',
    '{"schema":null,"payload":1}',
    "[1,2",
    "null",
    "true",
    "-0",
    "1e400",
    "2026-11-22T00:00:00Z",
    "${topic} $1 {} %s",
    "</script>&amp;",
    "x" * 100_000,
    "漢" * 5_000,
    "🚀" * 3_000,
    "",
    "the end",
]
_NUMBERS = [
    "1", "-7", "007", "+5", "-0", "300", "-129", "128", "65536", "2147483648", "9223372036854775807",
    "9223372036854775808", "3.5", "-3.99", "1e3", "1E10", "1.0e-5", "0.001", "123456789.125", "16777217",
    "1e23", "4.9e-324", "1e309", "-0.0", ".5", "5.", "NaN", "Infinity", "-Infinity", "nan", "inf", "1f", "2D",
    "0x10", "0x1p3", "1_000", " 5", "5 ", "\t6", "", "abc", "true", "TRUE", "False", "yes", "١٢", "\uff11\uff12", "--1",
    "1,5", "42",
]  # fmt: skip
_DATES = [
    "2026-11-22", "2024-02-29", "2024-02-30", "2023-13-45", "1-2-3", "26-1-1", "0001-01-03", "1582-10-10",
    "1500-02-29", "1969-12-31", "2026-11-22 and more", " 2026-11-22", "2026-11-22T10:00:00", "2026/11/22",
    "2026-11", "2026--11-22", "+2026-1-1", "20261122", "", "today", "\uff19-9-9", "1970-01-01",
]  # fmt: skip
# Outside the years 1 to 9999, which Python has, by the calendar that is Gregorian all through.
_FAR_DATES = ["-2026-01-01", "0001-01-01", "12026-01-01", "2026-01-01"]
_HALF_A_PAIR = b"\xed\xa0\x80"
# None of it is UTF-8.
_BROKEN = b"\xff\xfe " + _HALF_A_PAIR + b" \xc3( \xf0\x9f\x9a \xc0\xaf \xf4\x90\x80\x80 broken\n"
_ENDS = [b"\n", b"\r\n", b"\n", b"\r"]

CONTENTS: Mapping[File, bytes] = {
    "awkward": _BROKEN
    + b"".join(line.encode() + _ENDS[n % len(_ENDS)] for n, line in enumerate(_AWKWARD[:-1]))
    + _AWKWARD[-1].encode()
    + b"\n",
    "numbers": "".join(f"{line}\n" for line in _NUMBERS).encode(),
    "dates": "".join(f"{line}\n" for line in _DATES).encode(),
    "far dates": "".join(f"{line}\n" for line in _FAR_DATES).encode(),
}
"""What is in each file. Its last line is one that every chain keeps."""


def written(folder: Path) -> dict[File, Path]:
    """The files in *folder*, in which they are made."""
    paths: dict[File, Path] = {name: folder / f"{name}.txt" for name in CONTENTS}
    for name, path in paths.items():
        path.write_bytes(CONTENTS[name])
    return paths


def java_length(name: File) -> int:
    """How long the file is to Kafka Connect's connector, which counts UTF-16 units and not bytes.

    To Java, half a surrogate pair is one character that is wrong; to Python it is three.
    """
    content = CONTENTS[name].replace(_HALF_A_PAIR, b"?")
    return len(content.decode(errors="replace").encode("utf-16-le")) // 2
