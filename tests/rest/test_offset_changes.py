"""What we add to Kafka Connect's offsets: dry runs, history and undo, each by its own path or parameter."""

from __future__ import annotations

import httpx
import pytest

from headrace.connect.partition import SourcePartition
from headrace.herder.answers import ChangedOffset, PartitionLag, PastChange
from headrace.herder.requests import OffsetChange, UndoRequest
from rest.fake_herder import ALTERED, FakeHerder

CHANGE = {"offsets": [{"partition": {"f": "a"}, "offset": None}]}
CREATION = {"name": "d", "config": {"connector.class": "a.Files"}}


def test_altering_is_tried(client: httpx.Client, herder: FakeHerder):
    """The herder gets a dry run."""
    answer = client.patch("/connectors/c/offsets?dry_run=true", json=CHANGE)

    assert (200, {"message": ALTERED}) == (answer.status_code, answer.json())
    assert [
        ("try_alter_offsets", [OffsetChange(partition={"f": "a"}, offset=None)])
    ] == herder.calls


def test_resetting_is_tried(client: httpx.Client, herder: FakeHerder):
    """The herder gets a dry run; with false it does not."""
    client.delete("/connectors/c/offsets", params={"dry_run": "TRUE"})
    client.delete("/connectors/c/offsets", params={"dry_run": "false"})

    assert [("try_reset_offsets", "c"), ("reset_offsets", "c")] == herder.calls


def test_a_creation_is_tried(client: httpx.Client, herder: FakeHerder):
    """200 without a location, because there is nothing; the same request creates it afterwards."""
    tried = client.post("/connectors?dry_run=true", json=CREATION)
    made = client.post("/connectors", json=CREATION)

    assert (200, False) == (tried.status_code, "Location" in tried.headers)
    assert (201, True) == (made.status_code, "Location" in made.headers)
    assert {**CREATION["config"], "name": "d"} == tried.json()["config"]


@pytest.mark.parametrize("word", ["", "1", "yes"])
def test_a_dry_run_is_never_overlooked(client: httpx.Client, herder: FakeHerder, word: str):
    """A word that is neither true nor false is refused, and nothing is done."""
    query = {"dry_run": word}
    answers = [
        client.delete("/connectors/c/offsets", params=query),
        client.patch("/connectors/c/offsets", params=query, json=CHANGE),
        client.post("/connectors", params=query, json=CREATION),
        client.post("/connectors/c/offsets/undo", params=query, json={"change": 1}),
    ]

    assert [400] * 4 == [each.status_code for each in answers]
    shown = f"The parameter dry_run must be true or false, but is {word}"
    assert {shown} == {each.json()["message"] for each in answers}
    assert [] == herder.calls


def test_lag(client: httpx.Client, herder: FakeHerder):
    """Each offset with its lag; null where the connector does not know it."""
    herder.lags = [
        PartitionLag(partition=SourcePartition(f="a"), offset={"p": 1}, lag=7),
        PartitionLag(partition=SourcePartition(f="b"), offset={"p": 2}, lag=None),
    ]

    assert (
        '{"lag":[{"partition":{"f":"a"},"offset":{"p":1},"lag":7},'
        '{"partition":{"f":"b"},"offset":{"p":2},"lag":null}]}'
        == client.get("/connectors/c/offsets/lag").text
    )


def test_history(client: httpx.Client, herder: FakeHerder):
    """Every field of every change, numbers as Java writes them."""
    changed = ChangedOffset(partition=SourcePartition(f="a"), before={"p": 1e10}, after=None)
    herder.past = [
        PastChange(
            id=3,
            operation="undo",
            who="ann",
            at_ms=1_700_000_000_000,
            done=True,
            undoes=2,
            of_deleted=True,
            offsets=[changed],
        )
    ]

    assert (
        '{"history":[{"change":3,"operation":"undo","who":"ann","at_ms":1700000000000,"done":true,'
        '"undoes":2,"of_deleted":true,'
        '"offsets":[{"partition":{"f":"a"},"before":{"p":1.0E10},"after":null}]}]}'
        == client.get("/connectors/c/offsets/history").text
    )


def test_undo(client: httpx.Client, herder: FakeHerder):
    """By the number of the change; force and a dry run have to be requested."""
    path = "/connectors/c/offsets/undo"
    answer = client.post(path, json={"change": 3})
    client.post(f"{path}?dry_run=true", json={"change": 4, "force": True})

    assert (200, {"message": ALTERED}) == (answer.status_code, answer.json())
    assert [
        ("undo_offsets", UndoRequest(name="c", change=3)),
        ("undo_offsets", UndoRequest(name="c", change=4, force=True, dry_run=True)),
    ] == herder.calls


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({}, "change must be"),
        ({"change": "3"}, "change must be"),
        ({"change": 1.5}, "change must be"),
        ({"change": None}, "change must be"),
        ({"change": True}, "change must be"),
        ({"change": 3, "force": "yes"}, "force must be"),
        ({"change": 3, "force": None}, "force must be"),
    ],
)
def test_undoing_something_else(client: httpx.Client, herder: FakeHerder, body: object, shown: str):
    """400, and the herder is not called."""
    answer = client.post("/connectors/c/offsets/undo", json=body)

    assert (400, []) == (answer.status_code, herder.calls)
    assert shown in answer.json()["message"]


def test_undoing_with_other_fields(client: httpx.Client, herder: FakeHerder):
    """500, as every body with a field that is not known."""
    answer = client.post("/connectors/c/offsets/undo", json={"change": 3, "dry_run": True})

    assert (500, []) == (answer.status_code, herder.calls)
