"""Where the records of each file go, by what its name tells. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.naming.config import partition_problem
from headrace.connectors.files.naming.topics import template_of_topic, told_by_any, topic_problem
from headrace.sources.destination import Destination
from headrace.sources.text_template import TextTemplate


class Destinations:
    """Topic, Kafka partition and key of each file's records. Made once by a plan or a task."""

    def __init__(self, config: FilesConfig) -> None:
        self._root = config.root
        self._form = config.name_form
        self._levels = (config.name_template or "").count("/") + 1 if config.name_template else None
        known = frozenset[str]() if self._form is None else self._form.variables
        self._topic = template_of_topic(config.topic or "{{topic}}")
        self._partition = _template(config.partition, "partition", known)
        self._key = _template(config.key, "key", known)
        self._varies = any(
            each.variables for each in (self._topic, self._partition, self._key) if each is not None
        )
        self._same: Destination | None = None

    def is_named_so(self, path: str) -> bool:
        """Whether the file at *path*, or at this address, has the form that names must have."""
        return self._form is None or self._told(path) is not None

    def of(self, path: str) -> Destination:
        """Where the records of the file at *path* go.

        Raises :class:`~headrace.connect.errors.TaskFailedError`, naming it, where that can be no topic or
        partition.
        """
        if self._same is not None:
            return self._same
        made = self._made(path)
        if not self._varies:
            self._same = made
        return made

    def _made(self, path: str) -> Destination:
        told = {**told_by_any(path, self.name_of(path)), **(self._told(path) or {})}
        topic = _filled(path, "topic", self._topic, told)
        problem = topic_problem(topic)
        if problem:
            raise _refused(path, "topic", topic, problem)
        return Destination(
            topic=topic,
            partition=None if self._partition is None else _number(path, self._partition, told),
            key=None if self._key is None else _filled(path, "files.key", self._key, told),
        )

    def _told(self, path: str) -> Mapping[str, str] | None:
        if self._form is None:
            return {}
        name = self.name_of(path)
        if self._levels is not None:
            name = "/".join(name.split("/")[-self._levels :])
        return self._form.found(name)

    def name_of(self, path: str) -> str:
        """The path on disk, or the key in the store: what names are compared as."""
        found = None if self._root is None else self._root.key(path)
        return path if found is None else found


def _template(text: str | None, default: str, known: frozenset[str]) -> TextTemplate | None:
    if text is not None:
        return TextTemplate(text)
    return TextTemplate(f"{{{{{default}}}}}") if default in known else None


def _filled(path: str, setting: str, template: TextTemplate, told: Mapping[str, str]) -> str:
    try:
        return template.text(told)
    except ValueError as error:
        raise TaskFailedError(
            f"{path}: There is no {setting} for it: {error} in its name. {_ADVICE}"
        ) from None


def _number(path: str, template: TextTemplate, told: Mapping[str, str]) -> int:
    text = _filled(path, "files.partition", template, told)
    problem = partition_problem(text)
    if problem:
        raise _refused(path, "partition", text, problem)
    return int(text)


def _refused(path: str, noun: str, text: str, problem: str) -> TaskFailedError:
    return TaskFailedError(
        f"{path}: Its records would go to the {noun} {text!r}. {problem} {_ADVICE}"
    )


_ADVICE = (
    "Rename it, leave it out of files.path, or change topic and files.name.* so that they fit."
)
