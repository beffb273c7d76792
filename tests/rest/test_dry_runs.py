"""Our own additions below Kafka Connect's paths: dry runs, the history of offsets, and undo."""

from __future__ import annotations

import httpx
import pytest

from headrace.connect.partition import SourcePartition
from headrace.herder.answers import ChangedOffset, PastChange
from headrace.herder.requests import UndoRequest
from rest.fake_herder import FakeHerder

OFFSETS = {"offsets": [{"partition": {"f": "a"}, "offset": {"p": 1}}]}


def test_a_dry_creation_makes_nothing(client: httpx.Client, herder: FakeHerder):
    """200 with what would be made, and no address."""
    answer = client.post("/connectors?dry_run=true", json={"name": "n", "config": {}})

    assert (200, "n", None) == (
        answer.status_code,
        answer.json()["name"],
        answer.headers.get("location"),
    )
    assert "n" not in herder.configs
    shown = "Dry run: nothing was created. The configuration is valid."
    assert shown == answer.json()["message"]
    assert "message" not in client.post("/connectors", json={"name": "n", "config": {}}).json()


@pytest.mark.parametrize(
    ("word", "prefix"), [("true", "try_"), ("TRUE", "try_"), ("false", ""), (None, "")]
)
def test_dry_changes_of_offsets(
    client: httpx.Client, herder: FakeHerder, word: str | None, prefix: str
):
    """The herder gets the parameter; without it, it is no dry run."""
    query = "" if word is None else f"?dry_run={word}"
    client.patch(f"/connectors/c/offsets{query}", json=OFFSETS)
    client.delete(f"/connectors/c/offsets{query}")

    assert [f"{prefix}alter_offsets", f"{prefix}reset_offsets"] == [
        what for what, _ in herder.calls
    ]


@pytest.mark.parametrize("word", ["", "1", "yes", "treu"])
def test_a_misspelt_dry_run_changes_nothing(client: httpx.Client, herder: FakeHerder, word: str):
    """400, whatever was to be tried."""
    query = f"?dry_run={word}"
    answers = [
        client.patch(f"/connectors/c/offsets{query}", json=OFFSETS),
        client.delete(f"/connectors/c/offsets{query}"),
        client.post(f"/connectors{query}", json={"name": "n", "config": {}}),
        client.post(f"/connectors/c/offsets/undo{query}", json={"change": 1}),
    ]

    assert [400] * 4 == [each.status_code for each in answers]
    assert [] == herder.calls


def test_history(client: httpx.Client, herder: FakeHerder):
    """Everything that is kept of a change, nulls included."""
    changed = ChangedOffset(partition=SourcePartition(f="a"), before=None, after={"p": 1})
    past = PastChange(
        id=7, operation="undo", who="anna", at_ms=5, done=True, undoes=6, offsets=[changed]
    )
    herder.past = [past]
    (shown,) = client.get("/connectors/c/offsets/history").json()["history"]

    assert (7, "undo", "anna", True, 6) == tuple(
        shown[each] for each in ("change", "operation", "who", "done", "undoes")
    )
    assert [{"partition": {"f": "a"}, "before": None, "after": {"p": 1}}] == shown["offsets"]


def test_undo(client: httpx.Client, herder: FakeHerder):
    """By the change's number, with force and as a dry run if these are given."""
    client.post("/connectors/c/offsets/undo", json={"change": 7})
    client.post("/connectors/c/offsets/undo?dry_run=true", json={"change": 8, "force": True})

    assert [
        ("undo_offsets", UndoRequest(name="c", change=7)),
        ("undo_offsets", UndoRequest(name="c", change=8, force=True, dry_run=True)),
    ] == herder.calls


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"change": None}, 400),
        ({"change": "7"}, 400),
        ({"change": 1.5}, 400),
        ({"change": True}, 400),
        ({"change": 7, "force": "true"}, 400),
        ({"change": 7, "more": 1}, 500),
    ],
)
def test_malformed_undo(client: httpx.Client, herder: FakeHerder, body: object, status: int):
    """Nothing is guessed."""
    answer = client.post("/connectors/c/offsets/undo", json=body)

    assert (status, []) == (answer.status_code, herder.calls)
