"""What a schema registry keeps: schemas by id, and the versions of each subject."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from headrace.testing.avro_compatibility import reads

_UNREADABLE = (SchemaParseException, UnknownType, ValueError, KeyError, TypeError)


class RegistryRefusal(Exception):  # noqa: N818 (an answer with a status, not a failure)
    """An answer that is an error: *status* of HTTP and the registry's own *code*."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass
class RegistryStore:
    """Subjects and schemas in memory. Not safe for several threads at once.

    *compatibility* is BACKWARD (a new version reads what the newest one wrote) or NONE, of all subjects;
    *levels* has those of single ones.
    """

    compatibility: str = "BACKWARD"
    levels: dict[str, str] = field(default_factory=dict[str, str])
    _ids: dict[str, int] = field(default_factory=dict[str, int])
    _subjects: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def register(self, subject: str, schema: str) -> int:
        """The id of *schema*, a version of *subject* from now on; raises :class:`RegistryRefusal`."""
        text = _normal(schema)
        versions = self._subjects.get(subject, [])
        if self._ids.get(text) in versions:
            return self._ids[text]
        if versions and self.level(subject) != "NONE" and not self._fits(text, versions[-1]):
            raise RegistryRefusal(
                409, 409, "Schema being registered is incompatible with an earlier schema"
            )
        found = self._ids.setdefault(text, len(self._ids) + 1)
        self._subjects.setdefault(subject, []).append(found)
        return found

    def found(self, subject: str, schema: str) -> Mapping[str, object]:
        """The version of *subject* that *schema* is; raises :class:`RegistryRefusal`."""
        versions, text = self._versions(subject), _normal(schema)
        if self._ids.get(text) not in versions:
            raise RegistryRefusal(404, 40403, "Schema not found")
        return self.version(subject, str(versions.index(self._ids[text]) + 1))

    def version(self, subject: str, version: str) -> Mapping[str, object]:
        """A version of *subject*, ``latest`` for the newest; raises :class:`RegistryRefusal`."""
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise RegistryRefusal(404, 40402, f"Version {version} not found.")
        found = versions[number - 1]
        return {
            "subject": subject,
            "version": number,
            "id": found,
            "schema": self.schema(found),
        }

    def versions(self, subject: str) -> list[int]:
        """The numbers of *subject*'s versions; raises :class:`RegistryRefusal`."""
        return list(range(1, len(self._versions(subject)) + 1))

    def schema(self, schema_id: int) -> str:
        """The schema with that id, as JSON text; raises :class:`RegistryRefusal`."""
        for text, known in self._ids.items():
            if known == schema_id:
                return text
        raise RegistryRefusal(404, 40403, f"Schema {schema_id} not found")

    def subjects(self) -> list[str]:
        """The names of all subjects."""
        return sorted(self._subjects)

    def level(self, subject: str) -> str:
        """The compatibility of *subject*."""
        return self.levels.get(subject, self.compatibility)

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise RegistryRefusal(404, 40401, f"Subject '{subject}' not found.")
        return self._subjects[subject]

    def _fits(self, text: str, newest: int) -> bool:
        return reads(json.loads(text), json.loads(self.schema(newest)))


def _normal(schema: str) -> str:
    """*schema* as text that is the same for the same schema; checks that it is one."""
    try:
        told: Any = json.loads(schema)
        parse_schema(told)
    except _UNREADABLE as error:
        raise RegistryRefusal(422, 42201, f"Invalid schema: {error}") from error
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)
