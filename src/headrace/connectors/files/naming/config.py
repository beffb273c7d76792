"""The settings that say what names of files tell: which are read, and where their records go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from headrace.connect.config import Config, Problem
from headrace.connect.setting import setting
from headrace.connectors.files.naming.topics import (
    ALWAYS_TOLD,
    SHOWN,
    literal_problem,
    template_of_topic,
    topic_problem,
)
from headrace.sources.key_template import KeyTemplate, template_problem
from headrace.sources.name_pattern import NamePattern, pattern_problem
from headrace.sources.text_template import TextTemplate


class NameForm(Protocol):
    """A form that names have, with variables in it."""

    @property
    def variables(self) -> frozenset[str]:
        """The names of its variables."""
        ...

    def found(self, name: str, /) -> Mapping[str, str] | None:
        """What *name* tells; ``None`` when it is of another form."""
        ...


_LAST_PARTITION: Final = 2**31 - 1


def partition_problem(text: str) -> str | None:
    """What is wrong with *text* as a Kafka partition, or ``None``."""
    digits = text.isascii() and text.isdigit()
    # A number of thousands of digits is not even read.
    short = len(text.lstrip("0")) <= len(str(_LAST_PARTITION))
    good = digits and short and int(text) <= _LAST_PARTITION
    return None if good else f"A partition is a number from 0 to {_LAST_PARTITION}."


def _text_problem(text: str | None) -> str | None:
    try:
        TextTemplate(text or "")
    except ValueError as error:
        return str(error)
    return None


class NamingConfig(Config):
    """What names tell."""

    topic: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        valid=_text_problem,
        doc="The topic to send to. {{…}} in it stands for what the file's name tells; ${filename} for that "
        "name, with an underscore for each character that a topic's name cannot hold. Default: {{topic}}, where "
        "files.name.template or files.name.regex tells it.",
    )
    name_template: str | None = setting(
        "files.name.template",
        default=None,
        non_empty=True,
        valid=template_problem,
        doc="The form of names, such as {{topic}}/{{partition}}-{{start_offset}}.jsonl: of as many names at "
        "the end of the path as it has. Files of another form are left out. {{topic}}, {{partition}} and "
        "{{key}} say where records go; {{start_offset}} and {{timestamp}} are there to be used.",
    )
    name_regex: str | None = setting(
        "files.name.regex",
        default=None,
        non_empty=True,
        valid=pattern_problem,
        doc="A regular expression that is found somewhere in the path, or in the object's key; files in whose "
        "path it is not are left out. What its named groups hold can be used as {{…}}, such as (?P<topic>[^/]+).",
    )
    partition: str | None = setting(
        "files.partition",
        default=None,
        non_empty=True,
        valid=_text_problem,
        doc="The Kafka partition: a number, or {{…}} for what the file's name tells. Default: {{partition}}, "
        "where the name tells it; else the key decides, and without one the producer.",
    )
    key: str | None = setting(
        "files.key",
        default=None,
        non_empty=True,
        valid=_text_problem,
        doc="The key of all records of a file: text, with {{…}} for what the file's name tells, such as "
        "{{filename}}. Default: {{key}}, where the name tells it, else no key.",
    )

    @property
    def name_form(self) -> NameForm | None:
        """The form that names must have; ``None`` for any."""
        if self.name_template is not None:
            return KeyTemplate(self.name_template)
        return None if self.name_regex is None else NamePattern(self.name_regex)

    def check(self) -> Iterator[Problem]:
        """Rules across these settings."""
        yield from super().check()
        if self.name_template is not None and self.name_regex is not None:
            yield "files.name.regex", "Set it or files.name.template, but not both."
            return
        form = self.name_form
        told = ALWAYS_TOLD if form is None else ALWAYS_TOLD | form.variables
        for key, text in (("files.partition", self.partition), ("files.key", self.key)):
            yield from _untold(key, TextTemplate(text or ""), told)
            if "${filename}" in (text or ""):
                yield key, "Write {{filename}} for the file's name."
        if self.partition is not None:
            yield from _of_partition(TextTemplate(self.partition))
        yield from self._check_topic(told)

    def _check_topic(self, told: frozenset[str]) -> Iterator[Problem]:
        if self.topic is None:
            if "topic" not in told:
                yield "topic", _NO_TOPIC
            return
        template = template_of_topic(self.topic)
        yield from _untold("topic", template, told)
        problem = literal_problem(template) if template.variables else topic_problem(self.topic)
        if problem:
            yield "topic", f"Invalid value {self.topic} for configuration topic: {problem}"


_NO_TOPIC = (
    'Missing required configuration "topic" which has no default value. Names tell it where there is a '
    "{{topic}} in files.name.template, or such a group in files.name.regex."
)


def _untold(key: str, template: TextTemplate, told: frozenset[str]) -> Iterator[Problem]:
    for name in sorted(template.variables - told):
        known = ", ".join(f"{{{{{each}}}}}" for each in sorted(told - (ALWAYS_TOLD - SHOWN)))
        yield key, f"Nothing tells {{{{{name}}}}}; told are {known}."


def _of_partition(template: TextTemplate) -> Iterator[Problem]:
    if not all(not each or (each.isascii() and each.isdigit()) for each in template.literals):
        yield "files.partition", "Besides {{…}} it may only hold digits."
    elif not template.variables:
        problem = partition_problem(template.text({}))
        if problem:
            yield "files.partition", problem
