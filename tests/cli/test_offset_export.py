"""Offsets leave as a file and come back from it, in the form of Kafka Connect's answer."""

from __future__ import annotations

import json

import pytest

from headrace.cli.offset_files import DocumentError, exported, imported
from headrace.connect.partition import SourcePartition
from headrace.herder.answers import ConnectorOffset
from headrace.offsets.validation import offsets_to_alter

OFFSETS = {
    SourcePartition(filename="ü\n", part=2**62): {"share": 1.0, "position": 1, "done": True},
    SourcePartition(filename="a"): {"position": None},
}


def test_what_was_exported_is_imported_as_it_was():
    """Types of values survive."""
    text = exported(ConnectorOffset(partition=p, offset=o) for p, o in OFFSETS.items())

    assert repr(dict(sorted(OFFSETS.items(), key=repr))) == repr(
        dict(sorted(offsets_to_alter(imported(text)).items(), key=repr))
    )


def test_a_file_has_the_form_of_the_answer_and_a_line_for_each_offset():
    """Sorted, so that two files can be compared line by line."""
    text = exported(ConnectorOffset(partition=p, offset=o) for p, o in OFFSETS.items())

    assert {"offsets"} == json.loads(text).keys()
    assert text.splitlines()[1] == '{"partition":{"filename":"a"},"offset":{"position":null}},'
    assert len(text.splitlines()) == 4


def test_no_offsets_are_a_file_too():
    """An empty array."""
    assert imported(exported([])) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"offsets":{}}',
        '{"offsets":[7]}',
        '{"offsets":[{"partition":{}}]}',
        '{"offsets":[],"more":1}',
    ],
)
def test_another_file_is_refused(text: str):
    """Before any request to a worker."""
    with pytest.raises(DocumentError):
        imported(text)
