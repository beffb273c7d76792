"""How numbers and names stand in sentences."""

from __future__ import annotations

from headrace.kafka.sentences import counted, listed


def test_one_is_not_many() -> None:
    """Nor is none."""
    assert ["0 topics", "1 topic", "2 topics"] == [counted(number, "topic") for number in range(3)]


def test_the_first_few_are_named_and_the_others_counted() -> None:
    """Also where only the first ones are at hand."""
    assert "0, 1, 2" == listed(range(3))
    assert "0, 1, 2" == listed(range(3), most=3)
    assert "0; 1 and 1 more" == listed(range(3), most=2, separator="; ")
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 5 more" == listed(range(10), 15)
