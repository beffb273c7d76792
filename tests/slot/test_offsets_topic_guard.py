"""Records that would go to the topic that their task's offsets are in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.connect.errors import TaskFailedError
from headrace.kafka.sender import EncodedRecords
from headrace.slot.offsets_topic_guard import OffsetsTopicGuard
from headrace.testing.memory_sender import MemorySender

SENTENCE = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"
)


def _records(topic: str) -> EncodedRecords:
    return EncodedRecords(topic=topic, values=pa.array([b"x", b"y"], pa.binary()))


@pytest.mark.parametrize("send", ["send", "send_each"])
def test_they_fail_the_task_before_anything_is_sent(send: str) -> None:
    """The sentence is Kafka Connect's, with the task, the topic and what to do."""
    sender = MemorySender(transactional=True)
    guard = OffsetsTopicGuard(sender, "offsets", task="task c-3")

    with pytest.raises(TaskFailedError) as told:
        getattr(guard, send)(_records("offsets"))
    assert str(told.value).startswith(f"{SENTENCE}: task c-3 was to send 2 records to offsets, ")
    assert "offsets.storage.topic" in str(told.value)


def test_others_pass() -> None:
    """Whatever their topic is."""
    sender = MemorySender(transactional=True)
    sender.open()
    sender.begin()
    OffsetsTopicGuard(sender, "offsets", task="task c-0").send(_records("offsets-2"))
    sender.commit()

    assert [b"x", b"y"] == [value for _, _, value in sender.committed]
