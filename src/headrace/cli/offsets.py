"""`headrace offsets`: reads, compares, changes and restores the offsets of a worker's connectors."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click
import msgspec

from headrace.cli.offset_files import (
    STANDARD,
    Entry,
    History,
    Lag,
    Message,
    OffsetFileError,
    Offsets,
    PastChange,
    Values,
    read_offsets,
    sent,
    text,
    write_offsets,
)
from headrace.cli.rest_client import WorkerError
from headrace.cli.table import one_line, table_lines
from headrace.cli.worker_options import Asking, asks_worker, completed_names

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


_NOT_STOPPED = "must be in the STOPPED state"
_FILE = click.Path(path_type=Path, allow_dash=True)


def _values(_ctx: click.Context, _parameter: click.Parameter, given: str) -> Values:
    read = _json(given)
    if not isinstance(read, dict):
        raise click.BadParameter(f"{given} is not a JSON object.")
    return cast("Values", read)


def _values_or_null(ctx: click.Context, parameter: click.Parameter, given: str) -> Values | None:
    return None if _json(given) is None else _values(ctx, parameter, given)


def _json(given: str) -> object:
    try:
        return json.loads(given)
    except ValueError as error:
        raise click.BadParameter(
            f"{given} is not JSON: {error}. A shell takes it between single quotes: '{{\"position\": 7}}'."
        ) from error


_dry_run = click.option(
    "--dry-run", is_flag=True, help="Change nothing; tell what would change, in any state."
)


@click.group()
def offsets() -> None:
    """Read and change how far connectors have come.

    Only the offsets of a STOPPED connector are changed: see 'headrace connectors stop'.
    """


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.option(
    "--lag", is_flag=True, help="How much there is behind each, if the connector can tell."
)
def show(asking: Asking, name: str, *, lag: bool) -> None:
    """Show the offsets of connector NAME."""
    if lag:
        answer = asking.worker.get("connectors", name, "offsets", "lag")
        asking.show(answer, lag_lines(name, asking.worker.understood(answer, Lag)))
        return
    answer = _stored(asking, name)
    asking.show(answer, offset_lines(name, asking.worker.understood(answer, Offsets)))


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("other", required=False, shell_complete=completed_names)
@click.option("--file", type=_FILE, help="Compare with this file, an export; - is standard input.")
@click.option("--of", metavar="CONNECTOR", help="Whose offsets in a Java worker's file; NAME's.")
@click.option("--exit-code", is_flag=True, help="End with 1 when they differ.")
def diff(
    asking: Asking,
    name: str,
    *,
    other: str | None,
    file: Path | None,
    of: str | None,
    exit_code: bool,
) -> None:
    """Compare offsets.

    Those of connector NAME with those of connector OTHER, or with those in a file.
    """
    if (other is None) == (file is None):
        raise click.UsageError("Name another connector, or a file with --file.")
    left = asking.worker.understood(_stored(asking, name), Offsets)
    if file is not None:
        right, title = read_offsets(file, of or name), str(file)
    else:
        right, title = asking.worker.understood(_stored(asking, str(other)), Offsets), str(other)
    found = differences(left.known(), right.known())
    asking.show({"differences": found}, difference_lines(name, title, found))
    if exit_code and found:
        click.get_current_context().exit(1)


@offsets.command("set")
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("partition", callback=_values)
@click.argument("offset", callback=_values_or_null)
@_dry_run
def set_offset(
    asking: Asking, name: str, *, partition: Values, offset: Values | None, dry_run: bool
) -> None:
    """Set the offset of one partition.

    PARTITION and OFFSET of connector NAME are JSON; null forgets the offset. For many at once see 'headrace
    offsets import'.
    """
    _alter(asking, name, [Entry(partition, offset)], dry_run=dry_run)


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@_dry_run
def reset(asking: Asking, name: str, *, dry_run: bool) -> None:
    """Forget all offsets.

    Connector NAME begins again when it is resumed.
    """
    _change(asking, "DELETE", name, dry_run=dry_run)


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("change", type=int, required=False)
def history(asking: Asking, name: str, change: int | None) -> None:
    """Show who changed the offsets, and when.

    Those of connector NAME; with CHANGE, its number, what that one changed. Also of a connector that is gone.
    """
    answer, found = _history(asking, name)
    if change is None:
        asking.show(answer, history_lines(name, found))
        return
    one = _one(name, found, change)
    asking.show(msgspec.to_builtins(one), change_lines(one))


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("change", type=int, required=False)
@click.option("--force", is_flag=True, help="Also when the offsets have moved since.")
@_dry_run
def undo(asking: Asking, name: str, *, change: int | None, force: bool, dry_run: bool) -> None:
    """Put back what a change changed.

    CHANGE is its number in the history of connector NAME; the last one that was done if there is none.
    """
    number = _last(name, _history(asking, name)[1]) if change is None else change
    body = {"change": number, "force": force}
    _change(asking, "POST", name, "undo", body=body, dry_run=dry_run)


@offsets.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("file", type=_FILE, default="-")
def export(asking: Asking, name: str, file: Path) -> None:
    """Write offsets to a file.

    Those of connector NAME to FILE, which must not be there yet, or to the standard output.
    """
    answer = _stored(asking, name)
    found = asking.worker.understood(answer, Offsets)
    write_offsets(file, found)
    if file != STANDARD:
        asking.show(answer, export_lines(name, str(file), found))


@offsets.command("import")
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.argument("file", type=_FILE)
@click.option("--of", metavar="CONNECTOR", help="Whose offsets in a Java worker's file; NAME's.")
@click.option("--replace", is_flag=True, help="Forget the partitions that FILE does not have.")
@_dry_run
def import_file(
    asking: Asking, name: str, file: Path, *, of: str | None, replace: bool, dry_run: bool
) -> None:
    """Set offsets to those in a file.

    Those of connector NAME to those in FILE, an export; - is the standard input. The offsets file of a Java
    worker (offset.storage.file.filename) will do, too. Partitions that FILE does not have are left alone.
    """
    wanted = list(read_offsets(file, of or name).offsets)
    if replace:
        stored = asking.worker.understood(_stored(asking, name), Offsets).known()
        kept = Offsets(wanted).known()
        wanted += [Entry(each.partition, None) for key, each in stored.items() if key not in kept]
    if not wanted:
        there = (
            f"connector {name} has none, either"
            if replace
            else "'headrace offsets reset' forgets all"
        )
        raise OffsetFileError(f"{file} has no offsets, so there is nothing to change: {there}.")
    _alter(asking, name, wanted, dry_run=dry_run)


def _stored(asking: Asking, name: str) -> object:
    return asking.worker.get("connectors", name, "offsets")


def _alter(asking: Asking, name: str, entries: Iterable[Entry], *, dry_run: bool) -> None:
    _change(asking, "PATCH", name, body={"offsets": sent(entries)}, dry_run=dry_run)


def _change(
    asking: Asking, method: str, name: str, *more: str, body: object = None, dry_run: bool
) -> None:
    ask = asking.worker.try_out if dry_run else asking.worker.ask
    try:
        answer = ask(method, "connectors", name, "offsets", *more, body=body)
    except WorkerError as error:
        raise _with_stop(error, name) from error
    asking.show(answer, [asking.worker.understood(answer, Message).message])


def _with_stop(error: WorkerError, name: str) -> WorkerError:
    """Kafka Connect's sentence names a request, which is no help to whoever uses commands."""
    if _NOT_STOPPED not in str(error):
        return error
    return WorkerError(
        f"The offsets of connector {name} can be changed only while it is STOPPED. Stop it with 'headrace "
        f"connectors stop {shlex.quote(name)}', and resume it afterwards."
    )


def _history(asking: Asking, name: str) -> tuple[object, History]:
    answer = asking.worker.get("connectors", name, "offsets", "history")
    return answer, asking.worker.understood(answer, History)


def _one(name: str, found: History, number: int) -> PastChange:
    for each in found.history:
        if each.change == number:
            return each
    raise WorkerError(f"The history of connector {name} has no change {number}.")


def _last(name: str, found: History) -> int:
    for each in found.history:
        if each.done:
            return each.change
    raise WorkerError(f"The offsets of connector {name} have no change that could be undone.")
