"""JSON as Kafka Connect's REST API writes it: compact, in the order given, numbers and escapes as Java's."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from headrace.connect.java_text import java_double, json_quoted


def json_bytes(value: object) -> bytes:
    """*value* as UTF-8. Raises ``TypeError`` for what JSON has no form for."""
    # Names of files may hold bytes that are no text; Python's escape for these is JSON's as well.
    return "".join(_pieces(value)).encode(errors="backslashreplace")


def _pieces(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield json_quoted(value)
    elif isinstance(value, Mapping):
        yield from _members(cast("Mapping[str, object]", value))
    elif isinstance(value, bytes):
        yield f'"{base64.b64encode(value).decode()}"'
    elif isinstance(value, Sequence):
        yield from _elements(cast("Sequence[object]", value))
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # JSON has no such numbers: Java's library writes their names.
        return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
    raise TypeError(f"There is no JSON for a value of type {type(value).__name__}.")


def _members(members: Mapping[str, object]) -> Iterator[str]:
    before = "{"
    for name, value in members.items():
        yield f"{before}{json_quoted(name)}:"
        yield from _pieces(value)
        before = ","
    yield "{}" if before == "{" else "}"


def _elements(elements: Sequence[object]) -> Iterator[str]:
    before = "["
    for element in elements:
        yield before
        yield from _pieces(element)
        before = ","
    yield "[]" if before == "[" else "]"
