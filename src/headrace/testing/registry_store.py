"""What a schema registry keeps: schemas by id, and the versions of each subject."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from headrace.testing.avro_compatibility import expanded_reads

References = Sequence[Mapping[str, Any]]
"""What a schema refers to, each with ``name``, ``subject`` and ``version``."""

_UNREADABLE = (SchemaParseException, UnknownType, ValueError, KeyError, TypeError)


class RegistryRefusal(Exception):  # noqa: N818 (an answer with a status, not a failure)
    """An answer that is an error: *status* of HTTP and the registry's own *code*."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class _Reference:
    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class _Kept:
    text: str
    references: tuple[_Reference, ...]

    def told(self) -> Mapping[str, object]:
        """As registries answer it: without references where it has none."""
        references = {"references": [asdict(each) for each in self.references]}
        return {"schema": self.text, **(references if self.references else {})}


@dataclass
class RegistryStore:
    """Subjects and schemas in memory. Not safe for several threads at once.

    *compatibility* is BACKWARD (a new version reads what the newest one wrote) or NONE, of all subjects;
    *levels* has those of single ones.
    """

    compatibility: str = "BACKWARD"
    levels: dict[str, str] = field(default_factory=dict[str, str])
    _ids: dict[_Kept, int] = field(default_factory=dict[_Kept, int])
    _subjects: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def register(self, subject: str, schema: str, references: References = ()) -> int:
        """The id of *schema*, a version of *subject* from now on; raises :class:`RegistryRefusal`."""
        kept = self._kept(schema, references)
        versions = self._subjects.get(subject, [])
        if self._ids.get(kept) in versions:
            return self._ids[kept]
        if versions and self.level(subject) != "NONE" and not self._fits(kept, versions[-1]):
            raise RegistryRefusal(
                409, 409, "Schema being registered is incompatible with an earlier schema"
            )
        found = self._ids.setdefault(kept, len(self._ids) + 1)
        self._subjects.setdefault(subject, []).append(found)
        return found

    def found(self, subject: str, schema: str, references: References = ()) -> Mapping[str, object]:
        """The version of *subject* that *schema* is; raises :class:`RegistryRefusal`."""
        versions, kept = self._versions(subject), self._kept(schema, references)
        if self._ids.get(kept) not in versions:
            raise RegistryRefusal(404, 40403, "Schema not found")
        return self.version(subject, str(versions.index(self._ids[kept]) + 1))

    def version(self, subject: str, version: str) -> Mapping[str, object]:
        """A version of *subject*, ``latest`` for the newest; raises :class:`RegistryRefusal`."""
        versions = self._versions(subject)
        number = len(versions) if version == "latest" else int(version)
        if not 1 <= number <= len(versions):
            raise RegistryRefusal(404, 40402, f"Version {version} not found.")
        found = versions[number - 1]
        return {"subject": subject, "version": number, "id": found, **self.schema(found)}

    def versions(self, subject: str) -> list[int]:
        """The numbers of *subject*'s versions; raises :class:`RegistryRefusal`."""
        return list(range(1, len(self._versions(subject)) + 1))

    def schema(self, schema_id: int) -> Mapping[str, object]:
        """The schema with that id as JSON text, and its references; raises :class:`RegistryRefusal`."""
        return self._by_id(schema_id).told()

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

    def _by_id(self, schema_id: int) -> _Kept:
        for kept, known in self._ids.items():
            if known == schema_id:
                return kept
        raise RegistryRefusal(404, 40403, f"Schema {schema_id} not found")

    def _fits(self, kept: _Kept, newest: int) -> bool:
        return expanded_reads(self._expanded(kept), self._expanded(self._by_id(newest)))

    def _kept(self, schema: str, references: References) -> _Kept:
        """*schema* as text that is the same for the same schema; checks that it is one."""
        try:
            told: Any = json.loads(schema)
            text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
            kept = _Kept(text, tuple(_Reference(**each) for each in references))
            self._expanded(kept)
        except _UNREADABLE as error:
            raise RegistryRefusal(422, 42201, f"Invalid schema: {error}") from error
        return kept

    def _expanded(self, kept: _Kept, types: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        known: dict[str, Any] = {} if types is None else types
        for each in kept.references:
            self._expanded(self._referred(each), known)
        return parse_schema(json.loads(kept.text), named_schemas=known, expand=True)

    def _referred(self, reference: _Reference) -> _Kept:
        versions = self._subjects.get(reference.subject, [])
        if not 1 <= reference.version <= len(versions):
            raise RegistryRefusal(
                422,
                42201,
                f'No schema reference found for subject "{reference.subject}" and version '
                f"{reference.version}",
            )
        return self._by_id(versions[reference.version - 1])
