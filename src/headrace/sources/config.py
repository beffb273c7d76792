"""The settings that every native source has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import ConfigError
from headrace.connect.setting import Setting
from headrace.formats.by_name import FORMATS
from headrace.sources.distribution import DISTRIBUTIONS
from headrace.sources.key_template import template_problem
from headrace.sources.keys import KeyCodec

START_KEY = "native.start.key"
RECORD_KEY = "native.max.record.bytes"
_MIB = 1024 * 1024


class SourceConfig(Config):
    """Extend it with what the source needs. Keys and defaults are those of the seed's framework.

    To narrow one of these settings, declare its attribute again; to take it from the user, name it in
    :attr:`fixed`.
    """

    fixed: ClassVar[Mapping[str, str | None]] = {}
    """Keys that the user must not set, with the value that each always has; ``None``: it has no effect.

    Inherited ones are to be named again.
    """

    topic: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        doc="The topic to send to. Default: what the object or its key tells.",
    )
    key_template: str | None = setting(
        "native.key.template",
        default=None,
        non_empty=True,
        valid=template_problem,
        doc="The form of objects' keys, such as {{topic}}/{{partition}}-{{start_offset}}.jsonl. The topic, the "
        "Kafka partition and the key of records are what stands in the places of {{topic}}, {{partition}} and "
        "{{key}}; {{start_offset}} and {{timestamp}} are passed over. A key of another form tells nothing.",
    )
    max_poll_records: int = setting(
        default=500,
        at_least=1,
        doc="The most records that one poll returns; twice as many may wait to be polled.",
    )
    queue_bytes: int = setting(
        "native.queue.bytes",
        default=16 * _MIB,
        at_least=1,
        doc="The most bytes that may wait to be polled; one poll's records always may.",
    )
    max_record_bytes: int = setting(
        RECORD_KEY,
        default=_MIB,
        at_least=1,
        at_most=1024 * _MIB,
        doc="For csv, jsonl and lines: the longest line or CSV row in bytes; a longer one is an error and is "
        "never held in memory.",
    )
    distribution_type: str = setting(
        default="OBJECT_HASH",
        one_of=DISTRIBUTIONS,
        ignore_case=True,
        doc="Which task reads an object. OBJECT_HASH: told by its key. PARTITION: told by the Kafka "
        "partition that its key or context tells. ALL: every task reads what it gets.",
    )
    ring_buffer_size: int = setting(
        default=1000,
        at_least=0,
        doc="The look-back: how many of the last finished keys a listing goes back to find objects that came late; "
        "0 lists from the beginning each time.",
    )
    native_start_key: str | None = setting(
        default=None,
        doc="The key to list from as long as nothing was finished. Default: from the first one on.",
    )
    max_objects: int = setting(
        "native.max.objects.per.round",
        default=10_000,
        at_least=0,
        doc="The most objects that one plan reads, where the driver plans; 0 for no limit.",
    )
    changed: Literal["fail", "reread", "ignore"] = setting(
        "native.changed",
        default="fail",
        doc="What to do with an object that has another version than when records of it were sent: fail, "
        "reread it from its beginning, or ignore what is new in it. Noticed where the source tells versions, "
        "of the objects that a listing shows.",
    )
    extractor: str = setting(
        "extractor.class",
        default="bytes",
        one_of=tuple(FORMATS),
        ignore_case=True,
        doc="How an object becomes records; csv with its usual dialect: commas, quotes and a header.",
    )
    extractor_buffer: int = setting(
        default=4096,
        at_least=1,
        at_most=256 * _MIB,
        doc="For the extractor bytes: how many bytes a record holds.",
    )

    json_null: Literal["value", "tombstone"] = setting(
        "json.null",
        default="value",
        doc="For the extractor jsonl: what a line null is, a value as any other one, or a tombstone, which is "
        "a record without value.",
    )
    json_numbers: Literal["error", "decimal", "string"] = setting(
        "json.numbers",
        default="error",
        doc="Where JSON documents are parsed, which is for a last evolution of single records: what becomes "
        "of an integer beyond 64 bits, and of a number with more digits than a double keeps. The record is an "
        "error, or the number is a decimal.Decimal, or a string.",
    )

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """Those that the user may set."""
        return tuple(each for each in super().settings() if each.name not in cls.fixed)

    def check(self) -> Iterator[Problem]:
        """Override it for rules of your own, and go on with these."""
        yield from ()

    @classmethod
    def _read(cls, props: Mapping[str, str]) -> tuple[dict[str, Any], list[Problem]]:
        unknown = cls.fixed.keys() - {each.name for each in cls._attributes()}
        if unknown:
            raise _mistaken(cls, sorted(unknown), "It must name settings of its own.")
        always = {key: value for key, value in cls.fixed.items() if value is not None}
        theirs = {key: value for key, value in props.items() if key not in cls.fixed}
        values, problems = super()._read({**theirs, **always})
        wrong = [key for key, _ in problems if key in always]
        if wrong:
            told = " ".join(sentence for key, sentence in problems if key in wrong)
            raise _mistaken(cls, wrong, f"It must name values that can be: {told}")
        refused = [(key, _refusal(value)) for key, value in cls.fixed.items() if key in props]
        return values, [*refused, *problems]


def start_key(text: str, codec: KeyCodec[Any], source: str) -> Any:  # noqa: ANN401 (a key of the source's own type)
    """The key that *text*, the value of ``native.start.key``, stands for in *source*.

    Raises :class:`~headrace.connect.errors.ConfigError` for text that stands for none.
    """
    try:
        return codec.decode(text)
    except ValueError as error:
        told = f"{text!r} is no key of {source}: {error}. Write one as the source has it, or remove it."
        raise ConfigError([(START_KEY, told)]) from error


def _mistaken(config: type[SourceConfig], keys: Sequence[str], needed: str) -> ConfigError:
    told = ", ".join(keys)
    return ConfigError([("connector.class", f"{config.__name__}.fixed names {told}. {needed}")])


def _refusal(value: str | None) -> str:
    if value is None:
        return "It has no effect with this connector. Remove it."
    return f"It is always {value!r} with this connector. Remove it."
