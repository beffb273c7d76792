"""What the model of the commit matrix says is what is promised: the matrix compares Kafka with nothing else."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from end_to_end.commit_model import (
    MAIN,
    ROWS,
    VARIED,
    Cell,
    Ends,
    Model,
    Moment,
    Offset,
    Outcome,
    Update,
    main_values,
    side_value,
)

GROUPS = 5
CELLS = list(itertools.product(Ends, Update, Moment))


def outcome(cell: Cell) -> Outcome:
    """What the model says of a cell."""
    model = Model(cell)
    model.read(GROUPS)
    return model.outcome


def moves(found: Outcome) -> dict[str, list[Offset | None]]:
    """The offsets of each source without those that repeat the one before."""
    return {
        source: [offset for offset, _ in itertools.groupby(offsets)]
        for source, offsets in found.offsets.items()
    }


def all_values() -> list[str]:
    """Every record, in order."""
    groups = ((side_value(group), *main_values(group)) for group in range(GROUPS))
    return [*itertools.chain.from_iterable(groups)]


@pytest.mark.parametrize(("ends", "update", "moment"), CELLS)
def test_exactly_once_is_each_record_once_and_in_order(
    ends: Ends, update: Update, moment: Moment
) -> None:
    """Whenever the process dies."""
    cell = Cell(ends=ends, exactly_once=True, update=update, moment=moment)

    assert all_values() == outcome(cell).values


@pytest.mark.parametrize(("ends", "update"), list(itertools.product(Ends, Update)))
def test_exactly_once_leaves_the_same_offsets_whenever_the_process_dies(
    ends: Ends, update: Update
) -> None:
    """Those of a transaction that was not committed are not there, and come with the next one.

    At a run's end they are written again: how often depends on the moment.
    """
    before, during, after = (
        moves(outcome(Cell(ends=ends, exactly_once=True, update=update, moment=moment)))
        for moment in Moment
    )

    assert (before, before) == (during, after)


@pytest.mark.parametrize(("ends", "update", "moment"), CELLS)
def test_after_a_death_the_last_offsets_are_written_again(
    ends: Ends, update: Update, moment: Moment
) -> None:
    """Behind what was aborted, at the end of the connector; never what is not committed."""
    cell = Cell(ends=ends, exactly_once=True, update=update, moment=moment)

    main = outcome(cell).offsets[MAIN]

    assert main == sorted(main, key=lambda each: each["next"] if each else 0)
    assert len(main) > len(set(map(str, main)))


@pytest.mark.parametrize(("ends", "update", "moment"), CELLS)
def test_at_least_once_is_each_record_and_again_only_what_died_before_its_flush(
    ends: Ends, update: Update, moment: Moment
) -> None:
    """Once for each record where the offsets have reached the broker."""
    cell = Cell(ends=ends, exactly_once=False, update=update, moment=moment)
    found = Counter(outcome(cell).values)

    assert set(all_values()) == set(found)
    assert (moment is Moment.BEFORE) == any(count > 1 for count in found.values())


@pytest.mark.parametrize("update", Update)
def test_a_process_dies_once_with_records_and_once_with_offsets_alone(update: Update) -> None:
    """The second one goes on behind what the first has read; nothing moves offsets where nothing is returned."""
    cell = Cell(ends=Ends.POLL, exactly_once=True, update=update, moment=Moment.BEFORE)
    ends = [ROWS * VARIED, ROWS * GROUPS][: 1 if update is Update.NOTHING else 2]

    assert [{"next": each} for each in ends] == [each[MAIN] for each in outcome(cell).resumed]
