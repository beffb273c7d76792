"""JSON documents as Python values, with no number rounded. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from headrace.connect.errors import RecordError
from headrace.formats.exact_numbers import double_of, int64_of
from headrace.formats.surrogates import first_half

Numbers = Literal["error", "decimal", "string"]
"""What becomes of integers beyond 64 bits, and of numbers that have more digits than a double keeps."""


def parsed(document: str, numbers: Numbers) -> Any:  # noqa: ANN401 (whatever the document is)
    """The value of *document*, which is known to be JSON; integers are ``int``, other numbers ``float``.

    Of a name that an object has twice the last value counts. Raises
    :class:`~headrace.connect.errors.RecordError`, without a place, for a number that *numbers* refuses, for
    half a surrogate pair, which no text can hold, and for a document that is nested too deeply.
    """
    half = first_half(document.encode())
    if half is not None:
        raise RecordError(
            f"The escape {half} is a lone surrogate: half a pair, and no character.",
            advice="Write the character whole where the document is made, or have it passed on unchanged.",
        )
    instead = _INSTEAD[numbers]

    def whole(text: str) -> object:
        value = int64_of(text)
        return instead(text) if value is None else value

    def broken(text: str) -> object:
        value = double_of(text)
        return instead(text) if value is None else value

    try:
        return json.loads(document, parse_int=whole, parse_float=broken)
    except RecursionError as error:
        raise RecordError("This JSON document is nested too deeply to be read.") from error


_ADVICE = "Set json.numbers to decimal or string to have such numbers."
_SHOWN = 80


def _refused(text: str) -> object:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    raise RecordError(
        f"The number {shown} has more digits than 64 bits or a double hold.", advice=_ADVICE
    )


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise RecordError(
            f"The number {text[:_SHOWN]} has an exponent that no decimal has.",
            advice="Set json.numbers=string to have its text.",
        ) from error


_INSTEAD: dict[Numbers, Callable[[str], object]] = {
    "error": _refused,
    "decimal": _decimal,
    "string": str,
}
