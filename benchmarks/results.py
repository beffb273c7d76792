"""What was measured, row by row, and the ratios that it is for. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measuring import Measurement
from benchmarks.order_statistics import MedianInterval, median_interval
from benchmarks.rows import PAIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One number that we want to reach; *reached* compares it with *wanted*, ``None`` where nothing is."""

    title: str
    value: float
    wanted: float | None
    at_least: bool = True

    @property
    def reached(self) -> bool:
        """Whether the figure is as good as wanted."""
        if self.wanted is None:
            return True
        return self.value >= self.wanted if self.at_least else self.value <= self.wanted


@dataclass(frozen=True, slots=True)
class Results:
    """All runs of each row that was measured; a row's figures are the medians of its runs."""

    runs: Mapping[str, Sequence[Measurement]]

    def __contains__(self, key: str) -> bool:
        return key in self.runs

    def rate(self, key: str) -> float:
        """Records a second."""
        return statistics.median(run.rate for run in self.runs[key])

    def cpu_per_million(self, key: str) -> float:
        """CPU seconds per million records."""
        return statistics.median(run.cpu_per_million for run in self.runs[key])

    def start_seconds(self, key: str) -> float:
        """From the launch to the first record landed."""
        return statistics.median(run.start_seconds for run in self.runs[key])

    def start_cpu_seconds(self, key: str) -> float:
        """CPU time from the launch to the first record landed."""
        return statistics.median(run.start_cpu_seconds for run in self.runs[key])

    def peak_rss_bytes(self, key: str) -> int:
        """The most memory of any run."""
        return max(run.peak_rss_bytes for run in self.runs[key])

    def peak_slot_rss_bytes(self, key: str) -> int:
        """The most memory of one slot in any run."""
        return max(run.peak_slot_rss_bytes for run in self.runs[key])

    def usual_slot_rss_bytes(self, key: str) -> float:
        """The most memory of one slot, in the run in the middle: rows differ in how often they ran."""
        return statistics.median(run.peak_slot_rss_bytes for run in self.runs[key])

    def cost_of_exactly_once(self) -> MedianInterval | None:
        """The rate exactly-once over the rate at least once, pair by pair; None without pairs."""
        first, second = (self.runs.get(key, ()) for key in PAIR)
        pairs = [a.rate / b.rate for a, b in zip(first, second, strict=False)]
        return median_interval(pairs) if pairs else None


_BEST = "Kafka Connect's best exactly once"
_RATES: Sequence[tuple[str, str, str, float | None]] = (
    ("JSONL exactly once, of the client's limit, 1 slot", "jsonl-eos-1", "limit-1", 0.6),
    ("JSONL exactly once, of the client's limit, 2 slots", "jsonl-eos-2", "limit-2", 0.6),
    ("CSV exactly once, of the client's limit with its values", "csv-eos-1", "limit-csv-1", 0.35),
    (
        "Parquet to JSON exactly once, of the client's limit with its values",
        "parquet-eos-1",
        "limit-parquet-1",
        0.35,
    ),
    (
        "Avro to Avro exactly once, of the client's limit with its values",
        "avro-eos-1",
        "limit-avro-1",
        0.25,
    ),
    (
        "bytes exactly once, of the client's limit with its values",
        "bytes-eos-1",
        "limit-bytes-1",
        None,
    ),
    ("JSONL from S3 exactly once, of the client's limit", "jsonl-s3-eos-1", "limit-1", None),
    ("JSONL from S3 exactly once, of the same from disk", "jsonl-s3-eos-1", "jsonl-eos-1", None),
    ("JSONL from S3 exactly once, of the bare download", "jsonl-s3-eos-1", "download", None),
)


def ratios(results: Results) -> Iterator[Ratio]:
    """Every ratio whose rows were measured, in the order of the report."""
    for title, ours, theirs, wanted in _RATES:
        if ours in results and theirs in results:
            value = results.rate(ours) / results.rate(theirs)
            yield Ratio(title=title, value=value, wanted=wanted)
    yield from _against_client(results)
    for slots in (1, 2):
        yield from _against_connect(results, slots)
    yield from _chain_against_connect(results)


# A row's name and key, and how many times as many records a second, and as little CPU, are wanted of our own sender.
_SENDERS: Sequence[tuple[str, str, float | None, float | None]] = (
    ("lines, 1 slot", "lines-{}-1", 1.5, 2.5),
    ("JSONL, 1 slot", "jsonl-{}-1", 1.5, 2.5),
    ("lines, 2 slots", "lines-{}-2", None, None),
    ("JSONL, 2 slots", "jsonl-{}-2", None, None),
    ("CSV", "csv-{}-1", None, 1.5),
    ("Parquet to JSON", "parquet-{}-1", None, 1.5),
    ("Avro to Avro", "avro-{}-1", None, 1.5),
    ("bytes", "bytes-{}-1", None, None),
)


def _against_client(results: Results) -> Iterator[Ratio]:
    for name, key, rate, cpu in _SENDERS:
        ours, theirs = key.format("eos"), key.format("client")
        if ours in results and theirs in results:
            title = f"{name}: exactly once, times headrace.sender=client"
            value = results.rate(ours) / results.rate(theirs)
            yield Ratio(title=title, value=value, wanted=rate)
            title = f"{name}: the CPU seconds of headrace.sender=client, times its own"
            value = results.cpu_per_million(theirs) / results.cpu_per_million(ours)
            yield Ratio(title=title, value=value, wanted=cpu)


def _against_connect(results: Results, slots: int) -> Iterator[Ratio]:
    exactly, at_least = f"lines-eos-{slots}", f"lines-alo-{slots}"
    shown = f"{slots} slot" + "s" * (slots > 1)
    if exactly in results and "connect-eos" in results:
        title = f"exactly once, times Kafka Connect's as it comes, {shown}"
        value = results.rate(exactly) / results.rate("connect-eos")
        yield Ratio(title=title, value=value, wanted=5)
    if exactly in results and {"connect-eos", "connect-eos-interval"} <= set(results.runs):
        best = max(results.rate("connect-eos"), results.rate("connect-eos-interval"))
        title = f"exactly once, times {_BEST}, {shown}"
        yield Ratio(title=title, value=results.rate(exactly) / best, wanted=2)
    if exactly in results and "connect-alo" in results:
        title = f"exactly once, times Kafka Connect's at least once, {shown}"
        value = results.rate(exactly) / results.rate("connect-alo")
        yield Ratio(title=title, value=value, wanted=2)
    if at_least in results and "connect-alo" in results:
        title = f"at least once, times Kafka Connect's, {shown}"
        value = results.rate(at_least) / results.rate("connect-alo")
        yield Ratio(title=title, value=value, wanted=2)
    yield from _cpu_against_connect(results, exactly, shown)


def _cpu_against_connect(results: Results, ours: str, shown: str) -> Iterator[Ratio]:
    for key, name in (
        ("connect-eos", "exactly once as it comes"),
        ("connect-eos-interval", "exactly once with transactions of 1 s"),
        ("connect-alo", "at least once"),
    ):
        if ours in results and key in results:
            title = f"CPU seconds per record exactly once, of Kafka Connect's {name}, {shown}"
            value = results.cpu_per_million(ours) / results.cpu_per_million(key)
            yield Ratio(title=title, value=value, wanted=1 / 3, at_least=False)


def _chain_against_connect(results: Results) -> Iterator[Ratio]:
    ours = "file-stream-chain-eos"
    for theirs, name, wanted in (
        ("connect-chain-eos", "as it comes", 6),
        ("connect-chain-eos-interval", "with transactions of 1 s", None),
    ):
        if ours in results and theirs in results:
            title = (
                f"after a chain, records per CPU second exactly once, times Kafka Connect's {name}"
            )
            value = results.cpu_per_million(theirs) / results.cpu_per_million(ours)
            yield Ratio(title=title, value=value, wanted=wanted)
