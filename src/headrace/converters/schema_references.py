"""What a schema in a registry refers to: schemas of other subjects, which hold types that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from headrace.connect.errors import RecordError
from headrace.converters.registry_client import RegistryClient, SchemaReference, ToldSchema


def referred_schemas(client: RegistryClient, told: ToldSchema, name: str) -> list[object]:
    """All that *told*, which is called *name*, refers to, as JSON: each behind what it refers to itself.

    Of several versions under one name the first one counts, as in Confluent's client. Raises what *client*
    does, :class:`~headrace.connect.errors.RecordError` where what is referred to is not there, and
    ``ValueError`` for what is no JSON.
    """
    return list(_behind(client, told.references, name, set()))


def _behind(
    client: RegistryClient, references: Sequence[SchemaReference], name: str, seen: set[str]
) -> Iterator[object]:
    for each in references:
        if each.name in seen:
            continue
        seen.add(each.name)
        found = _asked(client, each, name)
        yield from _behind(
            client, found.references, f"{each.subject}, version {each.version}", seen
        )
        yield json.loads(found.schema)


def _asked(client: RegistryClient, reference: SchemaReference, name: str) -> ToldSchema:
    try:
        return client.version(reference.subject, reference.version).told
    except RecordError as error:
        raise RecordError(
            f"The schema {name}, refers to {reference.name} as version {reference.version} of the subject "
            f"{reference.subject}, which cannot be had: {error.reason}",
            row=0,
            advice="Register a version that refers to what is there, or holds all of its types.",
        ) from error
