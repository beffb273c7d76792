"""How many rows are tried at once."""

from __future__ import annotations

from headrace.formats.stride import Stride


def test_all_rows_are_tried_while_none_is_bad() -> None:
    """The usual file pays nothing."""
    stride = Stride(1000)
    stride.passed(1000)

    assert 1000 == stride.rows


def test_few_rows_are_tried_behind_a_bad_one_and_more_again_behind_good_ones() -> None:
    """But never more than the most."""
    stride = Stride(1000)
    stride.failed(0)
    tried = list[int]()
    for _ in range(4):
        tried.append(stride.rows)
        stride.passed(stride.rows)

    assert [16, 64, 256, 1000] == tried


def test_as_many_are_tried_as_good_ones_came_before() -> None:
    """Where one row in a hundred is bad, a chunk is about a hundred rows and not sixteen."""
    stride = Stride(1000)
    stride.passed(60)
    stride.failed(40)

    assert 200 == stride.rows


def test_the_most_may_be_less_than_a_few() -> None:
    """A reader that returns records one by one goes on doing so."""
    stride = Stride(1)
    stride.failed(0)

    assert 1 == stride.rows
