"""Offsets, differences of them and their history, for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from headrace.cli.offset_answers import Entry, History, Lag, Offsets, PastChange, Values, text
from headrace.cli.table import one_line, table_lines

Row = Sequence[str]

_OF_DELETED = ", of a deleted connector"


def offset_lines(name: str, offsets: Offsets) -> Iterator[str]:
    """One line for each source partition."""
    known = offsets.known()
    if not known:
        yield f"Connector {name} has no offsets."
        return
    yield from _table(
        ("partition", "offset"),
        [(named, text(each.offset)) for named, each in known.items()],
    )


def export_lines(name: str, file: str, offsets: Offsets) -> Iterator[str]:
    """What was written to a file."""
    count = len(offsets.known())
    yield one_line(
        f"{count} offset{'' if count == 1 else 's'} of connector {name} {'is' if count == 1 else 'are'} in {file}."
    )


def lag_lines(name: str, lag: Lag) -> Iterator[str]:
    """One line for each source partition, with how much there is behind its offset."""
    if not lag.lag:
        yield f"Connector {name} has no offsets."
        return
    rows = [
        (text(each.partition), "-" if each.lag is None else str(each.lag), text(each.offset))
        for each in lag.lag
    ]
    yield from _table(("partition", "lag", "offset"), sorted(rows))


def differences(
    left: Mapping[str, Entry], right: Mapping[str, Entry]
) -> list[dict[str, Values | None]]:
    """The partitions whose offsets differ, each with both of them; ``None`` for none."""
    found = list[dict[str, Values | None]]()
    for named in sorted({**left, **right}):
        ours, theirs = left.get(named), right.get(named)
        before, after = ours and ours.offset, theirs and theirs.offset
        if text(before) != text(after):
            partition = ours or theirs
            found.append(
                {"partition": partition and partition.partition, "left": before, "right": after}
            )
    return found


def difference_lines(
    left: str, right: str, found: Sequence[Mapping[str, Values | None]]
) -> Iterator[str]:
    """One line for each partition that differs; *left* and *right* are what is compared."""
    if not found:
        yield f"The offsets of {one_line(left)} and {one_line(right)} are the same."
        return
    yield from _table(
        ("partition", left, right),
        [tuple(text(each[side]) for side in ("partition", "left", "right")) for each in found],
    )


def history_lines(name: str, history: History) -> Iterator[str]:
    """One line for each change."""
    if not history.history:
        yield f"The offsets of connector {name} have not been changed by anybody."
        return
    yield from _table(
        ("change", "when", "who", "what", "partitions"),
        [
            (
                str(each.change),
                _when(each.at_ms),
                each.who or "-",
                _what(each),
                str(len(each.offsets)),
            )
            for each in history.history
        ],
    )


def change_lines(change: PastChange) -> Iterator[str]:
    """What one change changed."""
    who = f" by {change.who}" if change.who else ""
    yield one_line(f"Change {change.change}: {_what(change)}, {_when(change.at_ms)}{who}")
    if change.offsets:
        yield ""
        yield from _table(
            ("partition", "before", "after"),
            [
                (text(each.partition), text(each.before), text(each.after))
                for each in change.offsets
            ],
        )


def _what(change: PastChange) -> str:
    undone = "" if change.undoes is None else f" of {change.undoes}"
    failed = "" if change.done else ", not done"
    return f"{change.operation}{undone}{failed}{_OF_DELETED if change.of_deleted else ''}"


def _when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _table(columns: Row, rows: Sequence[Row]) -> Iterator[str]:
    return table_lines([[one_line(cell) for cell in row] for row in (columns, *rows)])
