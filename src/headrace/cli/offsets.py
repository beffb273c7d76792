"""`headrace offsets`: reads, compares, changes and restores the offsets of a worker's connectors."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click
import msgspec

from headrace.cli.offset_files import (
    STANDARD,
    DocumentError,
    Entry,
    OffsetFileError,
    Offsets,
    Values,
    parsed_json,
    read_offsets,
    sent,
    text,
    write_offsets,
)
from headrace.cli.rest_client import WorkerError
from headrace.cli.table import one_line, table
from headrace.cli.worker_options import CommandContext, completed_names, with_worker_or_flow

_OF_DELETED = ", of a deleted connector"
_NOT_STOPPED = "must be in the STOPPED state"
# In JSON, or in what a shell has left of it.
_KEY = re.compile(r"[{,]\s*\"?(\w+)\"?\s*:")
_PLACEHOLDER = re.compile(r"\"(\w+)\"\s*:\s*([A-Z]+)\s*[,}]")
_FILE = click.Path(path_type=Path, allow_dash=True)


class LaggingEntry(msgspec.Struct, frozen=True):
    """A source partition with its offset and lag, if the connector knows it."""

    partition: Values
    offset: Values
    lag: int | None


class Lag(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/offsets/lag``."""

    lag: Sequence[LaggingEntry]


class ChangedEntry(msgspec.Struct, frozen=True):
    """A source partition of a change."""

    partition: Values
    before: Values | None
    after: Values | None


class PastChange(msgspec.Struct, frozen=True):
    """A change of offsets that was requested."""

    change: int
    operation: str
    who: str | None
    at_ms: int
    done: bool
    undoes: int | None
    offsets: Sequence[ChangedEntry]
    of_deleted: bool = False


class History(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/offsets/history``, the newest first."""

    history: Sequence[PastChange]


class Message(msgspec.Struct, frozen=True):
    """The answer to a change."""

    message: str


def offset_lines(name: str, offsets: Offsets) -> Iterator[str]:
    """One line for each source partition."""
    known = offsets.known()
    if not known:
        yield f"Connector {name} has no offsets."
        return
    yield from table(
        ("partition", "offset"),
        [(named, text(each.offset)) for named, each in known.items()],
    )


def export_lines(name: str, file: str, offsets: Offsets) -> Iterator[str]:
    """The result of an export."""
    count = len(offsets.known())
    yield one_line(
        f"{count} offset{'' if count == 1 else 's'} of connector {name} {'is' if count == 1 else 'are'} in {file}."
    )


def lag_lines(name: str, lag: Lag) -> Iterator[str]:
    """One line for each source partition, with the lag of its offset."""
    if not lag.lag:
        yield f"Connector {name} has no offsets."
        return
    rows = [
        (text(each.partition), "-" if each.lag is None else str(each.lag), text(each.offset))
        for each in lag.lag
    ]
    yield from table(("partition", "lag", "offset"), sorted(rows))


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
    yield from table(
        ("partition", left, right),
        [tuple(text(each[side]) for side in ("partition", "left", "right")) for each in found],
    )


def history_lines(name: str, history: History) -> Iterator[str]:
    """One line for each change."""
    if not history.history:
        yield f"The offsets of connector {name} have not been changed on request."
        return
    yield from table(
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
    """The partitions of one change, with their offsets before and after."""
    who = f" by {change.who}" if change.who else ""
    yield one_line(f"Change {change.change}: {_what(change)}, {_when(change.at_ms)}{who}")
    if change.offsets:
        yield ""
        yield from table(
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


def _values(_ctx: click.Context, _parameter: click.Parameter, given: str) -> Values:
    read = _json(given)
    if not isinstance(read, dict):
        raise click.BadParameter(f"{given} is not a JSON object.")
    return cast("Values", read)


def _values_or_null(ctx: click.Context, parameter: click.Parameter, given: str) -> Values | None:
    return None if _json(given) is None else _values(ctx, parameter, given)


def _json(given: str) -> object:
    try:
        return parsed_json(given)
    except DocumentError as error:
        raise click.BadParameter(f"{error}.") from None
    except json.JSONDecodeError as error:
        raise click.BadParameter(f"{given} is not JSON: {error}. {_how_given(given)}") from error


def _how_given(given: str) -> str:
    """What to give instead of *given*, which is not JSON, with its own key: other connectors have others."""
    if (named := _PLACEHOLDER.search(given)) is not None:
        return f"Give a number in place of {named[2]}: '{{\"{named[1]}\": 7}}'."
    key = _KEY.search(given)
    example = (
        f": '{{\"{key[1]}\": 7}}'"
        if key
        else ", as 'headrace offsets show' shows those that there are"
    )
    return f"In a shell, put it in single quotes{example}."


_dry_run = click.option(
    "--dry-run", is_flag=True, help="Change nothing; show what would change, in any state."
)


@click.group()
def offsets() -> None:
    """Read and change the offsets of connectors.

    Only the offsets of a STOPPED connector can be changed: see 'headrace connectors stop'.
    """


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.option("--lag", is_flag=True, help="With the lag of each, if the connector knows it.")
def show(context: CommandContext, name: str, *, lag: bool) -> None:
    """Show the offsets of connector NAME."""
    if lag:
        answer = context.worker.get("connectors", name, "offsets", "lag")
        context.show(answer, lag_lines(name, context.worker.understood(answer, Lag)))
        return
    answer = _stored(context, name)
    context.show(answer, offset_lines(name, context.worker.understood(answer, Offsets)))


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("other", required=False, shell_complete=completed_names)
@click.option("--file", type=_FILE, help="Compare with this file, an export; - is standard input.")
@click.option(
    "--of", metavar="CONNECTOR", help="The connector in a Java worker's file; by default NAME."
)
@click.option("--exit-code", is_flag=True, help="End with 1 when they differ.")
def diff(
    context: CommandContext,
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
        raise click.UsageError("Give another connector, or a file with --file.")
    left = context.worker.understood(_stored(context, name), Offsets)
    if file is not None:
        right, title = read_offsets(file, of or name), str(file)
    else:
        right, title = context.worker.understood(_stored(context, str(other)), Offsets), str(other)
    found = differences(left.known(), right.known())
    context.show({"differences": found}, difference_lines(name, title, found))
    if exit_code and found:
        click.get_current_context().exit(1)


@offsets.command("set")
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("partition", callback=_values)
@click.argument("offset", callback=_values_or_null)
@_dry_run
def set_offset(
    context: CommandContext, name: str, *, partition: Values, offset: Values | None, dry_run: bool
) -> None:
    """Set the offset of one partition.

    PARTITION and OFFSET of connector NAME are JSON; null deletes the offset. To set many at once, see 'headrace
    offsets import'.
    """
    _alter(context, name, [Entry(partition, offset)], dry_run=dry_run)


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@_dry_run
def reset(context: CommandContext, name: str, *, dry_run: bool) -> None:
    """Delete all offsets.

    Connector NAME starts from the beginning when it is resumed.
    """
    _change(context, "DELETE", name, dry_run=dry_run)


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("change", type=int, required=False)
def history(context: CommandContext, name: str, change: int | None) -> None:
    """Show who changed the offsets, and when.

    Those of connector NAME; with CHANGE, a number, the details of that change. Works for deleted connectors, too.
    """
    answer, found = _history(context, name)
    if change is None:
        context.show(answer, history_lines(name, found))
        return
    one = _one(name, found, change)
    context.show(msgspec.to_builtins(one), change_lines(one))


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("change", type=int, required=False)
@click.option("--force", is_flag=True, help="Also when the offsets have moved since.")
@_dry_run
def undo(
    context: CommandContext, name: str, *, change: int | None, force: bool, dry_run: bool
) -> None:
    """Undo a change.

    CHANGE is its number in the history of connector NAME, by default the last one that was done.
    """
    number = _last(name, _history(context, name)[1]) if change is None else change
    body = {"change": number, "force": force}
    _change(context, "POST", name, "undo", body=body, dry_run=dry_run)


@offsets.command()
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("file", type=_FILE, default="-")
def export(context: CommandContext, name: str, file: Path) -> None:
    """Write offsets to a file.

    Those of connector NAME to FILE, which must not exist yet, or to the standard output.
    """
    answer = _stored(context, name)
    found = context.worker.understood(answer, Offsets)
    write_offsets(file, found)
    if file != STANDARD:
        context.show(answer, export_lines(name, str(file), found))


@offsets.command("import")
@with_worker_or_flow
@click.argument("name", shell_complete=completed_names)
@click.argument("file", type=_FILE)
@click.option(
    "--of", metavar="CONNECTOR", help="The connector in a Java worker's file; by default NAME."
)
@click.option("--replace", is_flag=True, help="Delete the offsets that FILE does not have.")
@_dry_run
def import_file(
    context: CommandContext, name: str, file: Path, *, of: str | None, replace: bool, dry_run: bool
) -> None:
    """Set offsets to those in a file.

    Those of connector NAME to those in FILE, an export; - is the standard input. The offsets file of a Java
    worker (offset.storage.file.filename) is accepted, too. Partitions that FILE does not have are left alone.
    """
    wanted = list(read_offsets(file, of or name).offsets)
    if replace:
        stored = context.worker.understood(_stored(context, name), Offsets).known()
        kept = Offsets(wanted).known()
        wanted += [Entry(each.partition, None) for key, each in stored.items() if key not in kept]
    if not wanted:
        there = (
            f"connector {name} has none, either"
            if replace
            else "'headrace offsets reset' deletes all"
        )
        raise OffsetFileError(f"{file} has no offsets, so there is nothing to change: {there}.")
    _alter(context, name, wanted, dry_run=dry_run)


def _stored(context: CommandContext, name: str) -> object:
    return context.worker.get("connectors", name, "offsets")


def _alter(context: CommandContext, name: str, entries: Iterable[Entry], *, dry_run: bool) -> None:
    _change(context, "PATCH", name, body={"offsets": sent(entries)}, dry_run=dry_run)


def _change(
    context: CommandContext, method: str, name: str, *more: str, body: object = None, dry_run: bool
) -> None:
    request = context.worker.request_dry_run if dry_run else context.worker.request
    try:
        answer = request(method, "connectors", name, "offsets", *more, body=body)
    except WorkerError as error:
        raise with_stop(error, name, context.options) from error
    context.show(answer, [context.worker.understood(answer, Message).message])


def with_stop(error: WorkerError, name: str, options: str) -> WorkerError:
    """*error*, with the command to use instead of the request that Kafka Connect's sentence names.

    *options* reach the worker.
    """
    if _NOT_STOPPED not in str(error):
        return error
    return WorkerError(
        f"The offsets of connector {name} can be changed only while it is STOPPED. Stop it with 'headrace "
        f"connectors stop {options}{shlex.quote(name)}', and resume it afterwards."
    )


def _history(context: CommandContext, name: str) -> tuple[object, History]:
    answer = context.worker.get("connectors", name, "offsets", "history")
    return answer, context.worker.understood(answer, History)


def _one(name: str, found: History, number: int) -> PastChange:
    for each in found.history:
        if each.change == number:
            return each
    raise WorkerError(f"The history of connector {name} has no change {number}.")


def _last(name: str, found: History) -> int:
    for each in found.history:
        if each.done:
            return each.change
    raise WorkerError(f"The offsets of connector {name} have no change that can be undone.")
