"""What objects of each format hold in the kill matrix: drawn once for each seed, and written by other libraries."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import Phase, given, settings
from hypothesis import strategies as some

Row = dict[str, Any]

_TEXT = some.text(some.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
_ROWS: some.SearchStrategy[Row] = some.fixed_dictionaries(
    {
        "text": _TEXT,
        "maybe": some.none() | _TEXT,
        "number": some.floats(allow_nan=False, allow_infinity=False),
        "whole": some.integers(-(2**63), 2**63 - 1),
        "flag": some.booleans(),
        "list": some.lists(some.integers(-5, 5), max_size=3),
    }
)
_JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | _TEXT,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "text", "type": "string"},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "number", "type": "double"},
        {"name": "whole", "type": "long"},
        {"name": "flag", "type": "boolean"},
        {"name": "list", "type": {"type": "array", "items": "long"}},
    ],
}
_PARQUET = pa.schema(
    [
        ("n", pa.int64()),
        ("text", pa.utf8()),
        ("maybe", pa.utf8()),
        ("number", pa.float64()),
        ("whole", pa.int64()),
        ("flag", pa.bool_()),
        ("list", pa.list_(pa.int64())),
    ]
)
PIECE = 64
"""How many bytes a record of the format bytes has."""


def drawn(strategy: some.SearchStrategy[Any], count: int, *, seed: int) -> list[Any]:
    """*count* examples of *strategy*, the same ones for the same *seed*."""
    found = list[Any]()

    @hypothesis.seed(seed)
    @settings(max_examples=count, database=None, phases=[Phase.generate])
    @given(strategy)
    def draw(value: object) -> None:
        found.append(value)

    draw()
    assert len(found) >= count // 2
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An object's bytes, and what the values of its records are in Kafka, in the form that :func:`canonical` gives."""

    content: bytes
    values: Sequence[bytes]


def canonical(value: bytes) -> bytes:
    """*value* without what may differ between writers of JSON; what is no JSON as it is."""
    try:
        return json.dumps(json.loads(value), sort_keys=True).encode()
    except ValueError:
        return value


def _objects(rows: Sequence[Row]) -> list[bytes]:
    return [canonical(json.dumps(row).encode()) for row in rows]


def _jsonl(number: int, seed: int, count: int) -> Written:
    """Documents of all kinds, which are passed on byte for byte."""
    documents = drawn(_JSON, count, seed=seed)
    lines = [
        json.dumps({"n": f"{number}.{n}", "v": each}, ensure_ascii=n % 2 > 0).encode()
        for n, each in enumerate(documents)
    ]
    return Written(content=b"\n".join(lines), values=lines)


def _csv(number: int, seed: int, count: int) -> Written:
    rows = [{"n": f"{number}.{n}", **row} for n, row in enumerate(_rows(seed, count))]
    texts = [{key: "" if each is None else str(each) for key, each in row.items()} for row in rows]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(texts[0]), lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(texts)
    return Written(content=out.getvalue().encode(), values=_objects(texts))


def _avro(number: int, seed: int, count: int) -> Written:
    rows = _numbered(number, seed, count)
    out = io.BytesIO()
    fastavro.writer(out, _AVRO, rows, codec="deflate", sync_interval=500)
    return Written(content=out.getvalue(), values=_objects(rows))


def _parquet(number: int, seed: int, count: int) -> Written:
    rows = _numbered(number, seed, count)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, _PARQUET), out, row_group_size=count // 3)
    return Written(content=out.getvalue(), values=_objects(rows))


def _bytes(number: int, seed: int, count: int) -> Written:
    """Pieces that begin with their number, the last one shorter."""
    pieces = drawn(some.binary(min_size=PIECE, max_size=PIECE), count, seed=seed)
    marked = [b"%d.%d " % (number, n) + each for n, each in enumerate(pieces)]
    cut = [each[:PIECE] for each in marked]
    cut[-1] = cut[-1][: PIECE // 2]
    return Written(content=b"".join(cut), values=[canonical(each) for each in cut])


def _gzip(number: int, seed: int, count: int) -> Written:
    plain = _jsonl(number, seed, count)
    return Written(content=gzip.compress(plain.content), values=plain.values)


def _rows(seed: int, count: int) -> list[Row]:
    return drawn(_ROWS, count, seed=seed)


def _numbered(number: int, seed: int, count: int) -> list[Row]:
    return [{"n": 1000 * number + n, **row} for n, row in enumerate(_rows(seed, count))]


Writer = Callable[[int, int, int], Written]
"""Makes the object of a number, from a seed, with about so many records."""

FORMATS: Mapping[str, Writer] = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".avro": _avro,
    ".parquet": _parquet,
    ".bin": _bytes,
    ".jsonl.gz": _gzip,
}
"""Writers by the extensions of their objects."""
