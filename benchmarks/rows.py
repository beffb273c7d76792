"""Which rows the benchmark has, and in which order they are measured. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from benchmarks.client_limit import ClientLimit
from benchmarks.connect_worker import ConnectWorker
from benchmarks.contender import Contender
from benchmarks.download import Download
from benchmarks.file_stream import INTERVAL, FileStream, with_chain
from benchmarks.headrace_worker import Format, HeadraceFileStream, HeadraceWorker
from benchmarks.sql import AS_SQL, AS_TRANSFORMS

Source = Literal["jsonl", "csv", "parquet", "avro", "bytes", "small jsonl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. *key* names it on the command line."""

    key: str
    title: str
    slots: int
    contender: Contender | Download
    source: Source = "jsonl"


def _limit(source: Source, title: str) -> Row:
    return Row(
        key=f"limit-{source}-1",
        title=f"client's limit, {title}'s values",
        slots=1,
        contender=ClientLimit(),
        source=source,
    )


def _ours(key: str, title: str, contender: HeadraceWorker, *, source: Source = "jsonl") -> Row:
    return Row(
        key=key,
        title=f"headrace, {title}",
        slots=contender.slots,
        contender=contender,
        source=source,
    )


BY_CLIENT: Final = {"headrace.sender": "client"}
# Name and most slots of each format; a CSV file cannot be split.
_FORMS: Sequence[tuple[Format, str, int]] = (
    ("jsonl", "JSONL", 2),
    ("csv", "CSV", 1),
    ("lines", "lines", 2),
)
BINARY: Sequence[tuple[Literal["parquet", "avro", "bytes"], str]] = (
    ("parquet", "Parquet to JSON"),
    ("avro", "Avro to Avro"),
    ("bytes", "bytes"),
)
ROWS: Final[Sequence[Row]] = (
    Row(key="limit-1", title="client's limit", slots=1, contender=ClientLimit(slots=1)),
    Row(key="limit-2", title="client's limit", slots=2, contender=ClientLimit(slots=2)),
    _limit("csv", "CSV"),
    *(_limit(source, title) for source, title in BINARY),
    *(
        _ours(
            f"{form}-{'eos' if once else 'alo'}-{slots}",
            f"{name}, {'exactly once' if once else 'at least once'}",
            HeadraceWorker(format=form, exactly_once=once, slots=slots),
            source="csv" if form == "csv" else "jsonl",
        )
        for form, name, most in _FORMS
        for slots in range(1, most + 1)
        for once in (True, False)
    ),
    *(
        _ours(
            f"{form}-client-{slots}",
            f"{name}, headrace.sender=client, exactly once",
            HeadraceWorker(format=form, exactly_once=True, slots=slots, settings=BY_CLIENT),
            source="csv" if form == "csv" else "jsonl",
        )
        for form, name, most in _FORMS
        for slots in range(1, most + 1)
    ),
    *(
        _ours(
            f"{form}-eos-1",
            f"{title}, exactly once",
            HeadraceWorker(format=form, exactly_once=True),
            source=form,
        )
        for form, title in BINARY
    ),
    *(
        _ours(
            f"{form}-client-1",
            f"{title}, headrace.sender=client, exactly once",
            HeadraceWorker(format=form, exactly_once=True, settings=BY_CLIENT),
            source=form,
        )
        for form, title in BINARY
    ),
    *(
        _ours(
            f"sql-{how}-1",
            f"CSV, a projection and a filter as {title}, exactly once",
            HeadraceWorker(format="csv", exactly_once=True, settings=settings),
            source="csv",
        )
        for how, title, settings in (
            ("transforms", "transformations", AS_TRANSFORMS),
            ("spark", "Spark SQL", AS_SQL),
        )
    ),
    Row(key="download", title="bare download of the JSONL file", slots=1, contender=Download()),
    _ours(
        "jsonl-s3-eos-1",
        "JSONL from S3, exactly once",
        HeadraceWorker(format="jsonl", exactly_once=True, from_store=True),
    ),
    _ours(
        "jsonl-eos-1-small",
        "JSONL, exactly once, a tenth of the file",
        HeadraceWorker(format="jsonl", exactly_once=True),
        source="small jsonl",
    ),
    Row(
        key="connect-eos",
        title="Kafka Connect, exactly once as it comes",
        slots=1,
        contender=ConnectWorker(exactly_once=True),
    ),
    Row(
        key="connect-eos-interval",
        title="Kafka Connect, exactly once, transactions of 1 s",
        slots=1,
        contender=ConnectWorker(exactly_once=True, connector=FileStream(settings=INTERVAL)),
    ),
    Row(
        key="connect-alo",
        title="Kafka Connect, at least once",
        slots=1,
        contender=ConnectWorker(exactly_once=False),
    ),
    Row(
        key="file-stream-chain-eos",
        title="headrace, Kafka Connect's connector with a chain, exactly once",
        slots=1,
        contender=HeadraceFileStream(connector=with_chain()),
    ),
    Row(
        key="connect-chain-eos",
        title="Kafka Connect, the same connector and chain, exactly once as it comes",
        slots=1,
        contender=ConnectWorker(exactly_once=True, connector=with_chain()),
    ),
    Row(
        key="connect-chain-eos-interval",
        title="Kafka Connect, the same, transactions of 1 s",
        slots=1,
        contender=ConnectWorker(exactly_once=True, connector=with_chain(INTERVAL)),
    ),
)
PAIR: Final = ("jsonl-eos-1", "jsonl-alo-1")
"""Exactly once and at least once, whose ratio is the cost of exactly-once."""


def chosen(patterns: Sequence[str]) -> list[Row]:
    """The rows whose keys match one of *patterns* (``*`` and ``?``), or all; in the table's order."""
    if not patterns:
        return list(ROWS)
    return [row for row in ROWS if any(fnmatchcase(row.key, pattern) for pattern in patterns)]


def schedule(keys: Collection[str], *, pairs: int) -> list[str]:
    """The order of runs: each of *keys* once, but both of PAIR, if there, alternating *pairs* times.

    Each pair is turned round against the one before, so that what comes second is not always the same.
    """
    if not set(PAIR) <= set(keys):
        return list(keys)
    alternating = [PAIR if number % 2 == 0 else PAIR[::-1] for number in range(pairs)]
    others = [key for key in keys if key not in PAIR]
    return [*others, *itertools.chain.from_iterable(alternating)]
