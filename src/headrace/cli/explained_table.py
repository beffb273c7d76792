"""What a plan would do, as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.cli.table import one_line, table_lines
from headrace.connect.explained import Explained

_COLUMNS = ("slot", "bytes", "topic", "partition", "format", "object")


def explained_lines(connector: str, objects: Sequence[Explained], *, slots: int) -> Iterator[str]:
    """The lines to print: a summary, what fails, a table of what is read, and what is not, with the reason."""
    failing = [each for each in objects if each.fails]
    read = [each for each in objects if each.slots and not each.fails]
    yield _summary(connector, read, failing=len(failing), objects=len(objects), slots=slots)
    yield from _block(map(_reason, failing))
    if read:
        yield from _block(table_lines([_COLUMNS, *map(_row, read)]))
    yield from _block(_reason(each) for each in objects if each.reason and not each.fails)


def _summary(
    connector: str, read: Sequence[Explained], *, failing: int, objects: int, slots: int
) -> str:
    """What would happen; as long as an object fails the connector, nothing is read."""
    if not objects:
        return f"{connector} has nothing to read."
    used = {slot for each in read for slot in each.slots}
    much = f"{_size(read)}in {len(used)} of {slots} slots."
    if not failing:
        return f"{connector} would read {len(read)} of {objects} objects, {much}"
    stops, them = ("stops", "it") if failing == 1 else ("stop", "them")
    told = f"{connector} would fail: {failing} of {objects} objects {stops} it."
    return f"{told} Without {them} {len(read)} would be read, {much}"


def _size(read: Sequence[Explained]) -> str:
    """How many bytes that is, where the connector knows it."""
    known = [each.size for each in read if each.size is not None]
    return f"{sum(known)} bytes, " if known or not read else ""


def _block(lines: Iterable[str]) -> Iterator[str]:
    """*lines* behind an empty one, if there are any."""
    for number, line in enumerate(lines):
        if not number:
            yield ""
        yield line


def _row(one: Explained) -> Sequence[str]:
    cells = (",".join(map(str, one.slots)), one.size, one.topic, one.partition, one.form)
    return [*("-" if each is None else one_line(str(each)) for each in cells), one_line(one.name)]


def _reason(one: Explained) -> str:
    verb = "fails the connector" if one.fails else "read" if one.slots else "not read"
    return f"{one_line(one.name)}: {verb}: {one_line(one.reason or '')}"
