"""Talking to a schema registry: what is asked, how often, and what its refusals become."""

from __future__ import annotations

import json
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.converters.registry_client import (
    RegistryAccess,
    RegistryClient,
    basic_authorization,
)
from headrace.testing.schema_registry import BadMoment, SchemaRegistry

TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
OTHER = json.dumps({"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]})
WIDER = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "int", "default": 1}],
    }
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry of the test's own."""
    with SchemaRegistry() as own:
        yield own


def client(*urls: str, **access: Any) -> RegistryClient:  # noqa: ANN401
    """A client that does not wait before it tries again."""
    return RegistryClient(RegistryAccess(urls=urls, **access), sleep=lambda _: None)


def dead_url() -> str:
    """Where no one listens."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        return f"http://127.0.0.1:{gone.getsockname()[1]}"


def test_a_schema_has_one_id_whatever_its_subject(registry: SchemaRegistry):
    """Registering it again changes nothing."""
    asking = client(registry.url)

    ids = [asking.register(subject, TEXT) for subject in ("a", "a", "b/c d")]

    assert ([1, 1, 1], ["a", "b/c d"]) == (ids, registry.store.subjects())
    assert json.loads(TEXT) == json.loads(asking.schema(1).schema)


def test_the_latest_version_of_a_subject(registry: SchemaRegistry):
    """With its id and number."""
    registry.register("a", json.loads(TEXT))
    registry.register("a", json.loads(WIDER))

    found = client(registry.url).latest("a")

    assert (2, 2, json.loads(WIDER)) == (found.id, found.version, json.loads(found.schema.schema))


def test_a_version_that_cannot_read_the_newest_is_refused(registry: SchemaRegistry):
    """Of one subject; the sentence says what to do, and the record's place is known later."""
    asking = client(registry.url)
    asking.register("a", TEXT)

    with pytest.raises(
        RecordError, match="not compatible with the versions of the subject a"
    ) as caught:
        asking.register("a", OTHER)

    assert 0 == caught.value.row
    assert "Change the schema in a compatible way" in str(caught.value)
    assert [2, 3] == [asking.register("a", WIDER), asking.register("b", OTHER)]


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (None, "has no subject a.*40401|auto.register.schemas=true"),
        (OTHER, "The subject a does not have this schema"),
    ],
)
def test_what_is_not_registered_is_not_found(
    registry: SchemaRegistry, known: str | None, reason: str
):
    """Neither the subject nor the schema."""
    if known:
        registry.register("a", json.loads(known))

    with pytest.raises(RecordError, match=reason):
        client(registry.url).find("a", TEXT)

    assert ["POST /subjects/a"] == registry.requests


def test_a_schema_that_is_none_is_refused(registry: SchemaRegistry):
    """In the registry's own words."""
    with pytest.raises(RecordError, match=r"refused the schema.*422 Invalid schema"):
        client(registry.url).register("a", '{"type":"nope"}')


def test_normalizing_is_asked_for(registry: SchemaRegistry):
    """By the query."""
    client(registry.url).register("a", TEXT, normalize=True)

    assert ["POST /subjects/a/versions?normalize=true"] == registry.requests


@pytest.mark.parametrize("moment", [500, 503, 429, BadMoment.CUT])
def test_a_bad_moment_is_tried_again(registry: SchemaRegistry, moment: int | BadMoment):
    """It passes, and no one hears of it."""
    registry.moments.extend([moment, moment])

    assert 1 == client(registry.url).register("a", TEXT)
    assert 3 == len(registry.requests)


def test_a_registry_that_does_not_answer_is_waited_for_a_little(registry: SchemaRegistry):
    """Then the next URL is asked, and the one that answered is the first from now on."""
    registry.moments.append(BadMoment.HANG)
    began = time.monotonic()
    with SchemaRegistry() as second:
        asking = client(registry.url, second.url, read_seconds=0.2)
        ids = [asking.register("a", TEXT), asking.register("b", TEXT)]

    # Less than what a connection may take.
    assert time.monotonic() - began < 8
    assert ([1, 1], 1, 2) == (ids, len(registry.requests), len(second.requests))


def test_when_no_one_answers_it_may_pass():
    """The error names each URL without its secrets, and the waits are bounded."""
    waits: list[float] = []
    dead = dead_url().replace("//", "//me:secret@")
    access = RegistryAccess(urls=[dead, dead_url()], longest_wait_seconds=0.3)

    with pytest.raises(RetriableError, match=r"schema\.registry\.url") as caught:
        RegistryClient(access, sleep=waits.append).register("a", TEXT)

    assert [0.1, 0.2, 0.3] == waits
    assert 2 == str(caught.value).count("refused")
    assert "secret" not in str(caught.value)


def test_a_refused_login_is_reported():
    """A password that is wrong does not pass."""
    with SchemaRegistry(user_info="me:secret") as guarded:
        for url in (guarded.url, guarded.url.replace("//", "//me:wrong@")):
            with pytest.raises(TaskFailedError, match=r"refuses access.*basic.auth.user.info"):
                client(url).register("a", TEXT)

        from_url = client(guarded.url.replace("//", "//me:secret@")).register("a", TEXT)
        given = client(guarded.url, authorization=basic_authorization("me:secret"))
        assert [1, 1] == [from_url, given.register("a", TEXT)]


@pytest.mark.parametrize("moment", [BadMoment.NONSENSE, 405])
def test_what_is_no_registry_is_reported(registry: SchemaRegistry, moment: int | BadMoment):
    """Such as a proxy, or another service at the same port."""
    registry.moments.append(moment)

    with pytest.raises(TaskFailedError, match=r"Check schema\.registry\.url"):
        client(registry.url).register("a", TEXT)


def test_a_path_in_the_url_is_kept(registry: SchemaRegistry):
    """Some registries are behind one."""
    with pytest.raises(TaskFailedError):
        client(f"{registry.url}/api/registry/").register("a", TEXT)

    assert ["POST /api/registry/subjects/a/versions"] == registry.requests


def test_access_hides_what_is_secret_and_travels():
    """It may be logged, and sent to another process."""
    access = RegistryAccess(urls=["http://r"], authorization="Basic c2VjcmV0")

    assert "c2VjcmV0" not in repr(access)
    assert access == pickle.loads(pickle.dumps(access))


def test_the_fixture_leaves_nothing_running():
    """Not even a request that it never answered."""
    before = set(threading.enumerate())
    with SchemaRegistry() as own:
        own.moments.append(BadMoment.HANG)
        with pytest.raises(RetriableError):
            client(own.url, read_seconds=0.1, retries=0).register("a", TEXT)

    assert set() == set(threading.enumerate()) - before
