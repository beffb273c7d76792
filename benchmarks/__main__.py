"""``python -m benchmarks``: measures everything and prints a table in Markdown."""

from __future__ import annotations

import argparse
import fnmatch
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from benchmarks.binary_samples import avro_sample, bytes_sample, parquet_sample
from benchmarks.chain import KEY as CHAIN
from benchmarks.chain import chain_figures
from benchmarks.client_limit import ClientLimit
from benchmarks.contender import BenchmarkError
from benchmarks.control import CONTROL_CASES, ControlCase
from benchmarks.control_scene import QUICK, WHOLE, ControlScene
from benchmarks.figure import Figure
from benchmarks.figure_report import figure_section
from benchmarks.group import GROUP_CASES
from benchmarks.group_scale import SCALE_CASES
from benchmarks.group_scale import measured as measured_scale
from benchmarks.headrace_worker import HeadraceWorker
from benchmarks.kafka_source import KEY as KAFKA_SOURCE
from benchmarks.kafka_source import Measured, measured_reads, shapes
from benchmarks.kafka_source_report import kafka_source_section, told
from benchmarks.machine import machine, versions
from benchmarks.measuring import BROKER_SETTINGS, Bench, Measurement
from benchmarks.mirror import (
    DELAY,
    Copied,
    Delayed,
    MirrorCase,
    cases,
    chosen_cases,
    measured_copies,
)
from benchmarks.mirror import QUICK as MIRROR_QUICK
from benchmarks.mirror_report import mirror_section
from benchmarks.mirror_report import told as told_of_mirror
from benchmarks.plan_report import plan_section
from benchmarks.plans import CASES, PlanMeasured, measured
from benchmarks.report import MIB, report
from benchmarks.results import Results
from benchmarks.rows import ROWS, Row, Source, chosen, schedule
from benchmarks.s3_server import s3_server
from benchmarks.samples import Sample, csv_sample, jsonl_sample
from benchmarks.senders import KEY as SENDERS
from benchmarks.senders import sender_figures
from benchmarks.stages import KEY as PROFILE
from benchmarks.stages import StageProfile, measured_stages, stage_section
from headrace.broker import Broker
from headrace.connect.errors import ConnectError
from headrace.testing.schema_registry import SchemaRegistry

# Six pairs are the fewest whose interval covers 95 %; all rows then take less than 20 minutes.
RECORDS, PAIRS = 10_000_000, 6
QUICK_RECORDS, QUICK_PAIRS = 2_000_000, 3
# By so much fewer files are planned over when it is to be quick.
PLAN_QUICK = 10
# A sender's figure has no start in it, so that few records are enough.
SENDER_SHARE = 5
# Enough for a figure that is measured in this process, without a start.
CHAIN_RECORDS = 100_000
CONTROL, CHAINS = "A worker that serves", "A chain of transformations"
ALONE = "The senders alone"
GROUP, SCALE = "Workers of a group", "A large group, computed"
# The sections of single figures, in the order of the report.
FIGURES = (ALONE, CONTROL, GROUP, SCALE, CHAINS)
# Of the records that are written to measure writing, so many are read to measure reading; large ones are fewer.
SMALL_SHARE, LARGE_SHARE = 0.3, 0.1
# Of these, so many are copied; of 1 KB, a fifth.
MIRROR_LARGE_SHARE = 0.2
DELAY_SECONDS, QUICK_DELAY_SECONDS = 60.0, 15.0
WARM_UP_RECORDS = 500_000
WARM_UP = (ClientLimit(), HeadraceWorker(format="lines", exactly_once=True))
# Below that, the seconds in which Java compiles are a large part of a run of Kafka Connect.
ENOUGH_RECORDS = 5_000_000
SHORT_RUN = (
    "**These runs are too short to compare anything.** What is read and queued before the first record "
    "lands is a large part of them (for all but the client's limit), and Kafka Connect's Java is "
    "still compiling itself.\n\n"
)
METHOD = Path(__file__).with_name("method.md")
# Remarks about the figures.
NOTES = Path(__file__).with_name("notes.md")


def main() -> int:
    """Measure, print, and write with ``--write``; the exit code is 1 when a row failed."""
    options = _options()
    if options.list:
        print("\n".join(_keys()))
        return 0
    signal.signal(signal.SIGTERM, _leave)
    began = datetime.now(UTC)
    runs: dict[str, list[Measurement]] = {}
    plans: dict[str, PlanMeasured] = {}
    figures: dict[str, dict[str, Sequence[Figure]]] = {title: {} for title in FIGURES}
    profiles, reads, mirrors = list[StageProfile](), list[Measured](), list[Copied | Delayed]()
    with tempfile.TemporaryDirectory(prefix="headrace-benchmark-", dir=options.folder) as name:
        try:
            failed = _measure(options, Path(name), runs) | _plan(options, Path(name), plans)
            failed |= _senders(options, Path(name), figures[ALONE])
            failed |= _control(options, Path(name) / "control", CONTROL_CASES, figures[CONTROL])
            failed |= _control(options, Path(name) / "group", GROUP_CASES, figures[GROUP])
            failed |= _scale(options, figures[SCALE])
            _chain(options, figures[CHAINS])
            _profile(options, Path(name), profiles)
            _read(options, Path(name), reads)
            failed |= _mirror(options, Path(name), mirrors)
        except KeyboardInterrupt:
            failed = True
            print("Interrupted; here is what was measured.", file=sys.stderr)
        except (BenchmarkError, ConnectError) as error:
            failed = True
            print(f"The run cannot continue: {error}", file=sys.stderr)
    sections = (
        plan_section(plans),
        *(figure_section(title, found) for title, found in figures.items()),
        stage_section(profiles),
        kafka_source_section(reads),
        mirror_section(mirrors),
    )
    _publish(_page(Results(runs), "".join(sections), began=began, options=options), options.write)
    return int(failed)


def _publish(page: str, file: Path | None) -> None:
    print(f"\n{page}")
    if file is not None:
        file.write_text(f"{METHOD.read_text()}\n{page}\n\n{NOTES.read_text()}")


def _keys() -> Iterator[str]:
    """What ``--only`` may name, a line each."""
    yield from (f"{row.key:22} {row.slots} {row.title}" for row in ROWS)
    all_cases = (*CASES, *CONTROL_CASES, *GROUP_CASES, *SCALE_CASES)
    yield from (f"{case.key:22}   {case.title}" for case in all_cases)
    yield f"{SENDERS:22}   both senders alone, to one partition and by key to many"
    yield f"{CHAIN:22}   a chain of transformations, in batches and record by record"
    yield f"{PROFILE:22}   where a slot's CPU time goes, by stage"
    yield f"{KAFKA_SOURCE:22}   reading Kafka in Spark, beside Spark's own source and the bare client"
    yield from (f"{case.key:22} {case.tasks} a mirror: {case.title}" for case in cases(1, 1))
    yield f"{DELAY:22}   a mirror's delays at a steady rate, and its restart after kill -9"


def _measure(options: argparse.Namespace, folder: Path, runs: dict[str, list[Measurement]]) -> bool:
    """Run everything, adding to *runs* as it goes; whether a row failed."""
    rows = {row.key: row for row in chosen(options.only)}
    if not rows:
        return False
    samples = _samples(folder, options.records, {row.source for row in rows.values()})
    failed = False
    with (
        Broker(folder / "broker", properties=BROKER_SETTINGS) as broker,
        SchemaRegistry() as registry,
        s3_server(folder) as store,
    ):
        bench = Bench(broker, folder, registry=registry.url, store=store)
        _say("warming up the broker and its transactions")
        few = jsonl_sample(folder, min(WARM_UP_RECORDS, options.records))
        for contender in WARM_UP:
            bench.measure(contender, few)
        order = schedule(list(rows), pairs=options.pairs)
        for number, key in enumerate(order, 1):
            _say(f"{number}/{len(order)} {rows[key].title} ({key})")
            try:
                measured = bench.measure(rows[key].contender, samples[rows[key].source])
            except BenchmarkError as error:
                failed = True
                _say(f"    FAILED: {error}")
                continue
            runs.setdefault(key, []).append(measured)
            _say(f"    {_short(measured, rows[key])}")
    return failed


def _samples(folder: Path, records: int, sources: set[Source]) -> dict[Source, Sample]:
    _say(f"making files of {records:,} records")
    makers = {
        "jsonl": lambda: jsonl_sample(folder, records),
        "csv": lambda: csv_sample(folder, records),
        "parquet": lambda: parquet_sample(folder, max(1, records // 2)),
        "avro": lambda: avro_sample(folder, max(1, records // 4)),
        "bytes": lambda: bytes_sample(folder, max(1, records // 100)),
        "small jsonl": lambda: jsonl_sample(folder, max(1, records // 10)),
    }
    return {source: makers[source]() for source in sorted(sources)}


def _plan(options: argparse.Namespace, folder: Path, plans: dict[str, PlanMeasured]) -> bool:
    """Measure the plans, adding to *plans* as it goes; whether one failed."""
    failed = False
    for case in CASES:
        if not _is_wanted(case.key, options):
            continue
        _say(f"a plan: {case.title} ({case.key})")
        files = case.files // PLAN_QUICK if options.quick else case.files
        try:
            plans[case.key] = measured(case, folder=folder, files=files)
        except BenchmarkError as error:
            failed = True
            _say(f"    FAILED: {error}")
            continue
        _say(f"    {plans[case.key]}")
    return failed


def _control(
    options: argparse.Namespace,
    place: Path,
    given: Sequence[ControlCase],
    figures: dict[str, Sequence[Figure]],
) -> bool:
    """Measure workers that serve, in the new folder *place*, adding to *figures* as it goes; whether a case failed."""
    cases = [case for case in given if _is_wanted(case.key, options)]
    if not cases:
        return False
    failed = False
    place.mkdir()
    with Broker(place / "broker", properties=BROKER_SETTINGS) as broker:
        scene = ControlScene(broker, place, QUICK if options.quick else WHOLE)
        for case in cases:
            _say(f"{case.title} ({case.key})")
            failed |= _added(figures, case.key, partial(case.measured, scene))
    return failed


def _senders(
    options: argparse.Namespace, folder: Path, figures: dict[str, Sequence[Figure]]
) -> bool:
    """Measure the senders alone, adding to *figures*; whether that failed."""
    if not _is_wanted(SENDERS, options):
        return False
    place = folder / SENDERS
    place.mkdir()
    _say(f"the senders alone ({SENDERS})")
    rounds, records = max(1, options.pairs // 2), options.records // SENDER_SHARE
    return _added(figures, SENDERS, partial(sender_figures, place, records, rounds=rounds))


def _scale(options: argparse.Namespace, figures: dict[str, Sequence[Figure]]) -> bool:
    """Compute what a large group costs, adding to *figures* as it goes; whether a case failed."""
    failed = False
    for case in SCALE_CASES:
        if _is_wanted(case.key, options):
            _say(f"{case.title} ({case.key})")
            failed |= _added(figures, case.key, partial(measured_scale, case))
    return failed


def _added(
    figures: dict[str, Sequence[Figure]], key: str, measure: Callable[[], Sequence[Figure]]
) -> bool:
    """Add what *measure* returns; whether it failed."""
    try:
        figures[key] = measure()
    except BenchmarkError as error:
        _say(f"    FAILED: {error}")
        return True
    for each in figures[key]:
        _say(f"    {each.title}: {each.value:.3f} {each.unit}")
    return False


def _chain(options: argparse.Namespace, figures: dict[str, Sequence[Figure]]) -> None:
    """Measure the chain, adding to *figures*."""
    if _is_wanted(CHAIN, options):
        _say(f"a chain of transformations ({CHAIN})")
        figures[CHAIN] = chain_figures(min(options.records, CHAIN_RECORDS))


def _profile(options: argparse.Namespace, folder: Path, profiles: list[StageProfile]) -> None:
    """Measure a slot by stage, adding to *profiles* as it goes."""
    if not _is_wanted(PROFILE, options):
        return
    place = folder / PROFILE
    place.mkdir()
    _say(f"a slot by stage ({PROFILE})")
    for each in measured_stages(place, options.records, rounds=max(1, options.pairs // 2)):
        _say(f"    {each.title}: {each.together:.3f} CPU s per million")
        profiles.append(each)


def _read(options: argparse.Namespace, folder: Path, reads: list[Measured]) -> None:
    """Measure reading Kafka, adding to *reads* as it goes."""
    if not _is_wanted(KAFKA_SOURCE, options):
        return
    small, large = (int(options.records * share) for share in (SMALL_SHARE, LARGE_SHARE))
    place = folder / KAFKA_SOURCE
    place.mkdir()
    with Broker(place / "broker") as broker:
        rounds = max(1, options.pairs // 2)
        for each in measured_reads(broker.bootstrap, shapes(small, large), rounds=rounds, say=_say):
            _say(f"    {told(each)}")
            reads.append(each)


def _mirror(options: argparse.Namespace, folder: Path, mirrors: list[Copied | Delayed]) -> bool:
    """Measure mirrors, adding to *mirrors* as it goes; whether a run failed."""
    wanted, failed = _mirror_cases(options), False
    has_delays = _is_wanted(DELAY, options)
    if not wanted and not has_delays:
        return False
    seconds = QUICK_DELAY_SECONDS if options.quick else DELAY_SECONDS
    place = folder / "mirror"
    place.mkdir()
    for one in measured_copies(
        place,
        wanted,
        rounds=max(1, options.pairs // 2),
        delay_seconds=seconds if has_delays else None,
        say=_say,
    ):
        if isinstance(one, BenchmarkError):
            failed = True
            _say(f"    FAILED: {one}")
            continue
        mirrors.append(one)
        _say(f"    {told_of_mirror(one)}")
    return failed


def _mirror_cases(options: argparse.Namespace) -> list[MirrorCase]:
    given = cases(options.records, int(options.records * MIRROR_LARGE_SHARE))
    patterns = options.only or (MIRROR_QUICK if options.quick else ["*"])
    return chosen_cases(given, patterns)


def _is_wanted(key: str, options: argparse.Namespace) -> bool:
    return not options.only or any(fnmatch.fnmatchcase(key, each) for each in options.only)


def _page(results: Results, sections: str, *, began: datetime, options: argparse.Namespace) -> str:
    warning = SHORT_RUN if options.records < ENOUGH_RECORDS else ""
    rates = f"\n\n{warning}{report(results)}" if results.runs or not sections else ""
    return (
        f"## Where and when\n\n{began:%d %B %Y}, {options.records:,} records a run. {machine()}. "
        f"{versions()}.{rates}{sections}"
    )


def _short(measured: Measurement, row: Row) -> str:
    return (
        f"{measured.rate:,.0f} records/s, {measured.cpu_per_million:.2f} CPU s per million, "
        f"{measured.peak_rss_bytes / MIB:,.0f} MiB (a slot {measured.peak_slot_rss_bytes / MIB:,.0f}), "
        f"{row.slots} slot{'s' * (row.slots > 1)}, {measured.seconds:.2f} s after "
        f"{measured.start_seconds:.1f} s of start, {measured.transactions} transactions"
    )


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--records", type=int, help=f"records a run (default: {RECORDS:,})")
    parser.add_argument("--pairs", type=int, help=f"pairs of both promises (default: {PAIRS})")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_RECORDS:,} records and {QUICK_PAIRS} pairs"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY", help="rows to take; * and ? work"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write a whole page there")
    parser.add_argument(
        "--folder", type=Path, help="where files and the broker's log go for a while"
    )
    parser.add_argument("--list", action="store_true", help="only list the rows' keys")
    options = parser.parse_args(arguments)
    options.records = options.records or (QUICK_RECORDS if options.quick else RECORDS)
    options.pairs = options.pairs or (QUICK_PAIRS if options.quick else PAIRS)
    return options


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    sys.exit(main())
