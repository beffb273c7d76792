"""An entry's properties as a source offset can hold them, and back. Pure.

Lists, maps and bytes are stored as one tagged string, because an offset that another tool reads holds
plain values only. A string that looks like a tagged one is tagged itself, so nothing is mistaken.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, cast

from headrace.connect.partition import OffsetValue

_TAG = "@json:"
_BYTES = "@bytes"
_INT64 = range(-(2**63), 2**63)


def stored(properties: Mapping[str, object]) -> dict[str, OffsetValue]:
    """*properties* as values of a source offset.

    Raises ``ValueError`` that names the property, for integers beyond 64 bits, floats that are no
    number, and types that cannot be stored.
    """
    return {name: _stored(name, value) for name, value in properties.items()}


def loaded(offset: Mapping[str, OffsetValue]) -> dict[str, object]:
    """What :func:`stored` was given; raises ``ValueError`` for a tagged string that is none of its."""
    return {name: _loaded(value) for name, value in offset.items()}


def _stored(name: str, value: object) -> OffsetValue:
    if isinstance(value, str):
        return f"{_TAG}{json.dumps(value)}" if value.startswith(_TAG) else value
    if isinstance(value, bytes | list | tuple | Mapping):
        text = json.dumps(_plain(name, cast("object", value)), separators=(",", ":"))
        return f"{_TAG}{text}"
    return cast("OffsetValue", _plain(name, value))


def _plain(name: str, value: object) -> object:
    """*value* as JSON has it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value not in _INT64:
            raise ValueError(f"The property {name!r} is {value}; integers may have 64 bits.")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"The property {name!r} is {value}, which cannot be stored.")
        return value
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [_plain(name, each) for each in cast("list[object]", value)]
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        # As pairs, because keys may be numbers, and a map may look like bytes.
        return {"@map": [[_plain(name, key), _plain(name, each)] for key, each in entries]}
    raise ValueError(
        f"The property {name!r} holds a {type(value).__name__}; only null, booleans, numbers, strings, "
        "bytes, lists and maps can be stored."
    )


def _loaded(value: OffsetValue) -> object:
    if isinstance(value, str) and value.startswith(_TAG):
        return _python(json.loads(value.removeprefix(_TAG)))
    return value


def _python(value: Any) -> object:  # noqa: ANN401 (JSON of any shape)
    if isinstance(value, list):
        return [_python(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        if _BYTES in value:
            return base64.b64decode(value[_BYTES])
        return {_python(key): _python(each) for key, each in value["@map"]}
    return value
