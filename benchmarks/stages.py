"""Where a slot's CPU time goes, by stage: lines and JSONL with our own sender, one slot, exactly once."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contender import BenchmarkError
from benchmarks.headrace_worker import Format, HeadraceWorker
from benchmarks.measuring import BROKER_SETTINGS, Bench
from benchmarks.report import markdown_table
from benchmarks.samples import jsonl_sample
from benchmarks.staged_worker import STAGES
from headrace.broker import Broker

KEY: Final = "profile"
"""Names it on the command line."""
_FORMATS: Final[Mapping[Format, str]] = {"lines": "lines", "jsonl": "JSONL"}
_SETTINGS: Final = {"headrace.sender": "wire"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """CPU seconds per million records of *title*, by stage, and how many records are sent at a time."""

    title: str
    per_million: Mapping[str, float]
    records_at_a_time: float

    @property
    def together(self) -> float:
        """CPU seconds per million records in all stages."""
        return sum(self.per_million.values())


def measured_stages(folder: Path, records: int, *, rounds: int) -> Iterator[StageProfile]:
    """A profile of each format over *records* lines, by the medians of some *rounds*; raises BenchmarkError."""
    with Broker(folder / "broker", properties=BROKER_SETTINGS) as broker:
        bench = Bench(broker, folder, registry="", store="")
        sample = jsonl_sample(folder, records)
        for form, title in _FORMATS.items():
            found = list[StageProfile]()
            for _ in range(rounds):
                with tempfile.TemporaryDirectory(dir=folder) as name:
                    written = Path(name) / "stages.json"
                    bench.measure(_worker(form, written), sample)
                    found.append(profile_of(title, written.read_text(), records))
            yield medians(found)


def _worker(form: Format, written: Path) -> HeadraceWorker:
    command = ("-m", "benchmarks.staged_worker", str(written))
    return HeadraceWorker(format=form, exactly_once=True, settings=_SETTINGS, command=command)


def profile_of(title: str, written: str, records: int) -> StageProfile:
    """What the worker has *written* of *records*; raises BenchmarkError for a stage in which it never was. Pure."""
    told = json.loads(written)
    missing = [stage for stage in STAGES if not told["calls"][stage]]
    if missing:
        raise BenchmarkError(f"No slot came through the stages {', '.join(missing)}.")
    return StageProfile(
        title=title,
        per_million={stage: told["seconds"][stage] / records * 1e6 for stage in STAGES},
        records_at_a_time=records / told["calls"]["convert"],
    )


def medians(found: Sequence[StageProfile]) -> StageProfile:
    """Of each stage the median. Pure."""
    return StageProfile(
        title=found[0].title,
        per_million={
            stage: statistics.median(each.per_million[stage] for each in found) for stage in STAGES
        },
        records_at_a_time=statistics.median(each.records_at_a_time for each in found),
    )


def stage_section(found: Sequence[StageProfile]) -> str:
    """A section for the profiles *found*; empty without any. Pure."""
    if not found:
        return ""
    rows = [
        *([stage, *(f"{each.per_million[stage]:.3f}" for each in found)] for stage in STAGES),
        ["together", *(f"{each.together:.3f}" for each in found)],
        ["records at a time", *(f"{each.records_at_a_time:,.0f}" for each in found)],
    ]
    table = markdown_table(("CPU seconds per million", *(each.title for each in found)), rows)
    return f"\n\n## A slot by stage\n\n{table}"
