"""Reads files that configure a worker or create a connector: JSON or Java properties, detected by their content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from headrace.config.properties_file import parsed_properties, property_pairs
from headrace.connect.errors import ConfigError
from headrace.connect.setting import trimmed_as_java
from headrace.herder.answers import TargetState
from headrace.herder.requests import TOO_DEEP, OffsetChange, is_too_deep, name_too_long

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = ("name", "config", "initial_state", "initial_offsets")
# A worker's answers have these fields, too, and people save such an answer as a file.
_ANSWERED = frozenset({"tasks", "type", "initial_offsets_response"})
_OFFSETS_FORM = (
    'It must be an array of objects such as {"partition": {"filename": "a"}, "offset": {"position": 7}}, '
    "with at least one element; an offset may be null, but may not be missing."
)


def config_texts(found: Mapping[str, object], *, where: str) -> dict[str, str]:
    """*found* with numbers and booleans as the text that Kafka Connect makes of them in JSON. Pure.

    Raises :class:`~headrace.connect.errors.ConfigError` with every other value that is not a text.
    """
    problems = [(key, _unfit(value)) for key, value in found.items() if not _is_scalar(value)]
    if problems:
        raise ConfigError(problems, where=where)
    return {key: _as_text(value) for key, value in found.items()}


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool | int | float)


def _unfit(value: object) -> str:
    if value is None:
        return "Null value can not be supplied as the configuration value."
    return "A configuration value must be a string, a number or a boolean."


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFile:
    """The content of a connector's file; *config* includes ``name`` and may hold secrets.

    *initial_offsets* (KIP-995) is ``None`` when the file has none.
    """

    name: str
    config: Mapping[str, str] = field(repr=False)
    initial_state: TargetState = TargetState.RUNNING
    initial_offsets: Sequence[OffsetChange] | None = None


def read_worker_file(path: Path) -> dict[str, str]:
    """A worker's configuration from a JSON object or a properties file.

    Raises :class:`~headrace.connect.errors.ConfigError` that names *path*.
    """
    content = _content(path)
    if not _is_json(content):
        return _properties(content, path)
    found = _json_object(content, path)
    if isinstance(found.get("config"), dict):
        raise _refused("file", "This is a connector's file. The worker's file comes first.", path)
    return config_texts(found, where=str(path))


def repeated_keys(path: Path) -> list[str]:
    """The keys that a worker's file, which can be read, has more than once; each once."""
    content = _content(path)
    pairs: Iterable[tuple[str, object]]
    if _is_json(content):
        pairs = cast("list[tuple[str, object]]", json.loads(content, object_pairs_hook=list))
    else:
        pairs = property_pairs(content)
    counts = Counter(key for key, _ in pairs)
    return [key for key, count in counts.items() if count > 1]


def read_connector_file(path: Path) -> ConnectorFile:
    """One connector from a JSON map, a JSON create request or a properties file.

    Raises :class:`~headrace.connect.errors.ConfigError` that names *path*.
    """
    content = _content(path)
    if not _is_json(content):
        return _connector(_properties(content, path), path)
    found = _json_object(content, path)
    if isinstance(found.get("config"), dict):
        return _create_request(found, path, json.loads(content).get("initial_offsets"))
    return _connector(config_texts(found, where=str(path)), path)


def _connector(config: Mapping[str, str], path: Path) -> ConnectorFile:
    if "name" not in config:
        raise _refused(
            "name",
            f"Connector configuration at '{path}' is missing the mandatory 'name' configuration",
            path,
        )
    name = _trimmed_name(config["name"], path)
    return ConnectorFile(name=name, config={**config, "name": name})


def _create_request(found: Mapping[str, object], path: Path, offsets: object) -> ConnectorFile:
    """The connector of a create request, or of an answer of ``GET /connectors/c``.

    *offsets* are its ``initial_offsets`` as JSON has them, with numbers as numbers.
    """
    _refuse_unknown(found, path)
    config = config_texts(cast("dict[str, object]", found["config"]), where=str(path))
    name = found.get("name", config.get("name"))
    if not isinstance(name, str):
        return _connector({}, path)
    if config.get("name", name) != name:
        raise _refused(
            "name",
            "Connector name configuration in 'config' doesn't match the one specified in 'name' "
            f"at '{path}'",
            path,
        )
    name = _trimmed_name(name, path)
    return ConnectorFile(
        name=name,
        config={**config, "name": name},
        initial_state=_initial_state(found.get("initial_state"), path),
        initial_offsets=_initial_offsets(offsets, path),
    )


def _trimmed_name(name: str, path: Path) -> str:
    # Here, as over REST, because later errors repeat the name.
    trimmed = trimmed_as_java(name)
    too_long = name_too_long(trimmed)
    if too_long is not None:
        raise _refused("name", too_long, path)
    return trimmed


def _refuse_unknown(found: Mapping[str, object], path: Path) -> None:
    """With a misspelt field ignored, the connector might start at the wrong offset or in the wrong state."""
    message = f"Unknown field; the fields of a connector's file are: {', '.join(_FIELDS)}."
    unknown = [(key, message) for key in found if key not in _ANSWERED.union(_FIELDS)]
    if unknown:
        raise ConfigError(unknown, where=str(path))


def _initial_offsets(given: object, path: Path) -> list[OffsetChange] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not given:
        raise _refused("initial_offsets", _OFFSETS_FORM, path)
    changes = list[OffsetChange]()
    for each in cast("list[object]", given):
        if not isinstance(each, dict):
            raise _refused("initial_offsets", _OFFSETS_FORM, path)
        entry = cast("dict[str, object]", each)
        if entry.keys() != {"partition", "offset"}:
            raise _refused("initial_offsets", _OFFSETS_FORM, path)
        changes.append(OffsetChange(partition=entry.get("partition"), offset=entry.get("offset")))
    return changes


def _initial_state(given: object, path: Path) -> TargetState:
    if given is None:
        return TargetState.RUNNING
    if str(given).upper() not in TargetState.__members__:
        choices = ", ".join(TargetState)
        raise _refused(
            "initial_state", f"{given} is not an initial state; valid ones are: {choices}", path
        )
    return TargetState(str(given).upper())


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refused("file", f"It cannot be read: {error.strerror}.", path) from error
    if b"\0" in content:
        message = "It is not a text file in UTF-8: it contains zero bytes. Name a JSON or properties file."
        raise _refused("file", message, path)
    # Some editors write this mark; it is not part of the first key.
    return content.removeprefix(_BYTE_ORDER_MARK)


def _is_json(content: bytes) -> bool:
    return content.lstrip().startswith(b"{")


def _json_object(content: bytes, path: Path) -> dict[str, object]:
    """The object in *content*, with numbers as their original text, because configurations are text."""
    try:
        found: dict[str, object] = json.loads(
            content.decode(), parse_int=str, parse_float=str, parse_constant=str
        )
    except UnicodeDecodeError as error:
        raise _refused("file", f"It is not UTF-8 at byte {error.start}.", path) from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        message = f"It is not valid JSON: {error.msg} at {place}."
        # The cause holds the whole file, and with it any secret.
        raise _refused("file", message, path) from None
    except RecursionError:
        raise _too_deep(path) from None
    if is_too_deep(found):
        raise _too_deep(path)
    return found


def _too_deep(path: Path) -> ConfigError:
    return _refused("file", f"It is {TOO_DEEP}.", path)


def _properties(content: bytes, path: Path) -> dict[str, str]:
    if _is_other_json(content):
        raise _refused("file", "It is JSON, but not an object: it must begin with {.", path)
    try:
        return parsed_properties(content)
    except ValueError as error:
        raise _refused("file", f"It is not a valid properties file: {error}", path) from error


def _is_other_json(content: bytes) -> bool:
    if not content.lstrip().startswith((b"[", b'"')):
        return False
    try:
        json.loads(content)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _refused(key: str, sentence: str, path: Path) -> ConfigError:
    return ConfigError([(key, sentence)], where=str(path))


def connector_config(path: Path) -> Mapping[str, str]:
    """The configuration in the file at *path*, for a command that runs the connector without a worker that stays.

    Raises :class:`~headrace.connect.errors.ConfigError`, also for an initial state or initial offsets.
    """
    file = read_connector_file(path)
    problems = list[tuple[str, str]]()
    if file.initial_state is not TargetState.RUNNING:
        message = f"{file.initial_state} has no effect without a long-running worker; leave it out."
        problems.append(("initial_state", message))
    if file.initial_offsets is not None:
        message = "They have no effect without a long-running worker; leave them out."
        problems.append(("initial_offsets", message))
    if problems:
        raise ConfigError(problems, where=str(path))
    return file.config
