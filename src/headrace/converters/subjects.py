"""Under which subject of the registry a schema is kept."""

from __future__ import annotations

from typing import Any, Final

from headrace.connect.errors import RecordError
from headrace.converters.avro_schema import AvroJson

_PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC: Final = f"{_PACKAGE}TopicNameStrategy"
RECORD: Final = f"{_PACKAGE}RecordNameStrategy"
TOPIC_RECORD: Final = f"{_PACKAGE}TopicRecordNameStrategy"
STRATEGIES: Final = (TOPIC, RECORD, TOPIC_RECORD)
SHORT_NAMES: Final = tuple(each.removeprefix(_PACKAGE) for each in STRATEGIES)


def subject_of(strategy: str, topic: str, told: AvroJson, *, is_key: bool) -> str:
    """The subject of the schema *told* by one of ``STRATEGIES``, or by its name without the package.

    Pure. Raises :class:`~headrace.connect.errors.RecordError` for a schema without a name, where the
    strategy takes it.
    """
    strategy = strategy.removeprefix(_PACKAGE)
    if strategy == SHORT_NAMES[0]:
        return f"{topic}-{'key' if is_key else 'value'}"
    name = _record_name(told, strategy, is_key=is_key)
    return name if strategy == SHORT_NAMES[1] else f"{topic}-{name}"


def _record_name(told: AvroJson, strategy: str, *, is_key: bool) -> str:
    if not isinstance(told, dict) or told["type"] != "record":
        what = "key" if is_key else "value"
        raise RecordError(
            f"{strategy} takes the name of a record, but the {what}'s schema is none.",
            row=0,
            advice=f"Set {what}.subject.name.strategy={TOPIC}.",
        )
    return _full_name(told)


def _full_name(told: dict[str, Any]) -> str:
    space = told.get("namespace")
    return f"{space}.{told['name']}" if space else told["name"]
