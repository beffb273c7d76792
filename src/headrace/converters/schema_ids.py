"""The ids that a registry gives schemas: asked for once, then remembered."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from headrace.connect.errors import RecordError
from headrace.converters.avro_layout import UNFIT, cannot_be_read, layout_difference
from headrace.converters.avro_schema import AvroJson
from headrace.converters.registry_client import RegistryClient, ToldSchema
from headrace.converters.schema_references import referred_schemas

REFUSED_SECONDS: Final = 5.0
"""How long a refusal is remembered: else each record that is passed over would be a question of its own."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Bounded(Generic[_Key, _Value]):
    """A mapping that forgets what was not asked for the longest, once it is full."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """What is known of *key*."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, key: _Key, value: _Value) -> _Value:
        """Remember *value*, and return it."""
        self._known[key] = value
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return value


class Origin(Enum):
    """Where the id comes from."""

    REGISTERED = auto()
    FOUND = auto()
    LATEST = auto()
    GIVEN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdChoice:
    """How ids are found; *given* is the id to use when the origin says so."""

    origin: Origin = Origin.REGISTERED
    normalize: bool = False
    given: int = -1


class SchemaIds:
    """Knows the ids of schemas by subject. Made in the slot, used by its thread."""

    def __init__(
        self,
        client: RegistryClient,
        choice: IdChoice,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._choice = choice
        self._clock = clock
        self._known: Bounded[tuple[str, str], int] = Bounded(most)
        self._refused: Bounded[tuple[str, str], tuple[float, RecordError]] = Bounded(most)

    def id_of(self, subject: str, told: AvroJson, text: str) -> int:
        """The id of the schema *told*, which is *text*, under *subject*; raises what :class:`RegistryClient` does.

        Asks the registry the first time only. Raises :class:`~headrace.connect.errors.RecordError` when
        the schema that is to be used would not describe the bytes.
        """
        known = self._known.get((subject, text))
        if known is not None:
            return known
        refused = self._refused.get((subject, text))
        if refused is not None and self._clock() < refused[0]:
            raise RecordError(refused[1].reason, row=0, advice=refused[1].advice)
        try:
            return self._known.put((subject, text), self._asked(subject, told, text))
        except RecordError as error:
            self._refused.put((subject, text), (self._clock() + REFUSED_SECONDS, error))
            raise

    def _asked(self, subject: str, told: AvroJson, text: str) -> int:
        choice = self._choice
        if choice.origin is Origin.REGISTERED:
            return self._client.register(subject, text, normalize=choice.normalize)
        if choice.origin is Origin.FOUND:
            return self._client.find(subject, text, normalize=choice.normalize)
        if choice.origin is Origin.GIVEN:
            self._check(told, self._client.schema(choice.given), f"with the id {choice.given}")
            return choice.given
        latest = self._client.latest(subject)
        self._check(told, latest.told, f"{subject}, version {latest.version}")
        return latest.id

    def _check(self, ours: AvroJson, theirs: ToldSchema, name: str) -> None:
        try:
            referred = referred_schemas(self._client, theirs, name)
            difference = layout_difference(ours, json.loads(theirs.schema), referred)
        except UNFIT as error:
            raise cannot_be_read(error) from error
        if difference:
            raise RecordError(
                f"The values cannot be written with the schema {name}: {difference}.",
                row=0,
                advice="Register a version that fits them, or set auto.register.schemas=true.",
            )
