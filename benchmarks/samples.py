"""Makes the text files that all contenders read: the same records as JSON lines and as CSV rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.values import write_values

# Records written in one piece; also the number of different records, apart from their numbers.
CHUNK = 10_000
FIELDS = ("id", "time", "device", "reading", "unit", "state", "note")
_STATES = ("ok", "ok", "ok", "late", "repeated")
_JSON = (
    '{"id":%d,"time":"2026-03-%02dT%02d:%02d:%02dZ","device":"sensor-%04d","reading":%d.%02d,'
    '"unit":"celsius","state":"%s","note":"measured in the hall, %06d"}\n'
)
# The same fields, with a longer note, so that rows are as long as the JSON lines.
_CSV = (
    '%d,2026-03-%02dT%02d:%02d:%02dZ,sensor-%04d,%d.%02d,celsius,%s,"measured in the hall, %06d,'
    ' and kept because no one said that it may go away"\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A file of *records*; *bytes_each* is their mean length in it, with line ends.

    *values* is a file of some of the values that this file's records become in Kafka.
    """

    path: Path
    records: int
    bytes_each: float
    values: Path


def json_line(number: int) -> str:
    """Record *number* as a JSON line, with its line end. Pure."""
    return _JSON % fields_of(number)


def csv_row(number: int) -> str:
    """Record *number* as a CSV row with a quoted field, with its line end. Pure."""
    return _CSV % fields_of(number)


def csv_value(number: int) -> str:
    """What CSV row *number* becomes in Kafka: a JSON object of strings, with a line end. Pure."""
    id_, day, hour, minute, second, device, whole, part, state, note = fields_of(number)
    values = (
        str(id_),
        f"2026-03-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
        f"sensor-{device:04}",
        f"{whole}.{part:02}",
        "celsius",
        state,
        f"measured in the hall, {note:06}, and kept because no one said that it may go away",
    )
    return json.dumps(dict(zip(FIELDS, values, strict=True)), separators=(",", ":")) + "\n"


def jsonl_sample(folder: Path, records: int) -> Sample:
    """A file of *records* JSON lines of about 150 bytes in *folder*."""
    return _sample(folder / f"records-{records}.jsonl", records, line=json_line, value=json_line)


def csv_sample(folder: Path, records: int) -> Sample:
    """A file with a header and *records* CSV rows of about 150 bytes in *folder*."""
    path = folder / f"records-{records}.csv"
    return _sample(path, records, line=csv_row, value=csv_value, header=",".join(FIELDS) + "\n")


def _sample(
    path: Path,
    records: int,
    *,
    line: Callable[[int], str],
    value: Callable[[int], str],
    header: str = "",
) -> Sample:
    with path.open("w") as file:
        file.write(header)
        file.writelines(_chunks(records, line))
    # Not a suffix of the name: a store lists all keys that begin with it.
    values = path.with_name(f"values-of-{path.name}")
    write_values(values, (value(each).rstrip("\n").encode() for each in range(min(CHUNK, records))))
    written = path.stat().st_size - len(header)
    return Sample(path=path, records=records, bytes_each=written / records, values=values)


def _chunks(records: int, line: Callable[[int], str]) -> Iterator[str]:
    for start in range(0, records, CHUNK):
        yield "".join(map(line, range(start, min(records, start + CHUNK))))


def fields_of(number: int) -> tuple[int, int, int, int, int, int, int, int, str, int]:
    """What makes up record *number*: the number, and then day, hour, minute and second of its time. Pure."""
    second = number % 60
    minute = number // 60 % 60
    hour = number // 3600 % 24
    mixed = number * 2_654_435_761 % 4_294_967_296
    return (
        number,
        number // 86_400 % 28 + 1,
        hour,
        minute,
        second,
        mixed % 10_000,
        mixed // 10_000 % 40,
        mixed // 400_000 % 100,
        _STATES[mixed % len(_STATES)],
        mixed // 1_000 % 1_000_000,
    )
