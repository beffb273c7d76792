"""An independent reading of the files, with nothing but Python: what has to be in Kafka in the end."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from settings import FILES, NOT_KNOWN, NUMBERS


def records_by_file(folder: Path = FILES) -> dict[str, Counter[str]]:
    """Every record of every file, by its path within *folder*."""
    return {
        str(path.relative_to(folder)): Counter(_records(path))
        for path in sorted(folder.glob("*/*"))
    }


def canonical(row: Mapping[str, object]) -> str:
    """One text for the same content, however its numbers and spaces were written."""
    return json.dumps(
        {name: float(value) if isinstance(value, int) else value for name, value in row.items()}
    )


def _records(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        rows = csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file)
        for row in rows:
            yield canonical(_typed(row) if path.suffix == ".csv" else row)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8", newline="")


def _typed(row: Mapping[str, str]) -> dict[str, object]:
    return {
        name: None if text == NOT_KNOWN else float(text) if name in NUMBERS else text
        for name, text in row.items()
    }
