"""Where in a column an error belongs: the row that holds an element, the field that holds a value."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np

from headrace.connect.errors import RecordError


def row_at(borders: np.ndarray) -> Callable[[int], int]:
    """Which row holds an element, when row *i* has the elements ``borders[i] … borders[i + 1]``."""
    return lambda element: int(np.searchsorted(borders, element, side="right")) - 1


@contextmanager
def in_rows(row_of: Callable[[int], int]) -> Generator[None]:
    """An error's row is one of elements; raise it with the row of values that holds the element."""
    try:
        yield
    except RecordError as error:
        row = None if error.row is None else row_of(error.row)
        raise RecordError(error.reason, row=row, advice=error.advice) from error


@contextmanager
def in_field(name: str) -> Generator[None]:
    """An error's advice names the innermost field."""
    try:
        yield
    except RecordError as error:
        advice = error.advice or f"The field is {name}."
        raise RecordError(error.reason, row=error.row, advice=advice) from error
