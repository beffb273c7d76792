"""What is told while objects of Aiven's S3 source are read speaks of the keys that its users write."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import cast

import pytest

from connectors.test_files_store_selection import OBJECT, ListedStore
from headrace.connect import Explained, RecordError, TaskFailedError
from headrace.connect.connector import PlanRequest
from headrace.connectors.files.aiven.config import AivenS3Config
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.aiven.words import in_peers_words, say_in_peers_words
from headrace.connectors.files.selecting.addresses import Root
from headrace.stores.store import Store, StoredObject
from headrace.testing.task_runs import StoredOffsets

REQUEST = PlanRequest(slots=1, offsets=StoredOffsets({}))


def started(
    monkeypatch: pytest.MonkeyPatch, *objects: StoredObject, template: str
) -> AivenS3Connector:
    """The connector, over a store of *objects*."""

    def opened(_config: AivenS3Config, _root: Root) -> Store:
        return cast("Store", ListedStore(*objects))

    monkeypatch.setattr(AivenS3Config, "open_store", opened)
    made = AivenS3Connector()
    made.start({"aws.s3.bucket.name": "abc", "file.name.template": template})
    return made


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Leave it out of files.path.", "Leave it out of aws.s3.prefix."),
        ("Change topic and files.name.* now.", "Change topic and file.name.template now."),
        ("Check s3.endpoint, or s3.region.", "Check aws.s3.endpoint, or aws.s3.region."),
        ("s3://b/files.path and s3.regions", "s3://b/files.path and s3.regions"),
    ],
)
def test_keys_are_translated(ours: str, theirs: str):
    """Where they are keys."""
    assert theirs == in_peers_words(ours)


def test_errors_of_records_keep_what_they_know():
    """Whoever adds the place says the sentence again."""
    error = RecordError("Too long (files.compression).", advice="Change files.format.")

    say_in_peers_words(error)

    told = "s3://b/a, byte 1: Too long (file.compression.type). Change input.format."
    assert told == str(error.located("s3://b/a", "byte 1"))


def test_reasons_errors_and_the_log_speak_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Of names of another form, of such that tell a wrong topic, and of an empty store."""
    other = replace(OBJECT, key="other")
    with caplog.at_level(logging.WARNING):
        started(monkeypatch, template="{{topic}}-x").plan(REQUEST)
    (told,) = started(monkeypatch, other, template="{{topic}}-x").explain(REQUEST)
    topic = r"^(?<topic>\w+ \w+)$"
    (failing,) = started(monkeypatch, replace(OBJECT, key="a b"), template=topic).explain(REQUEST)
    with pytest.raises(TaskFailedError, match=r"leave it out of aws\.s3\.prefix"):
        started(monkeypatch, replace(OBJECT, key="a b"), template=topic).plan(REQUEST)

    assert "entry of aws.s3.prefix" in caplog.text
    reason = "Its name is not of the form that file.name.template wants."
    assert Explained(name="s3://abc/other", reason=reason) == told
    assert "change topic and file.name.template" in str(failing.reason)
