"""A person who does what a sentence advises."""

from __future__ import annotations

import json
import re
import shlex

from connectors.files_steps import Stored
from headrace.connect import SourcePartition
from headrace.connect.connector import SourceConnector
from headrace.connect.task import Offsets
from headrace.testing.task_runs import LocalConnectorContext, StoredOffsets

_COMMAND = re.compile(r"\((headrace offsets .*)\) and resume it")


def obey(sentence: str, stored: Stored, connector: SourceConnector) -> None:
    """Type the one command in *sentence*, as a shell reads it; *connector* is asked as a worker asks it."""
    (found,) = _COMMAND.finditer(sentence)
    program, group, command, name, *given = shlex.split(found[1])
    assert ("headrace", "offsets", "CONNECTOR") == (program, group, name)
    changed: Offsets = dict.fromkeys(stored)
    if command == "set":
        partition, offset = map(json.loads, given)
        changed = {SourcePartition(partition): offset}
    connector.initialize(LocalConnectorContext(offsets=StoredOffsets(stored)))
    connector.validate_offsets({"file": "/a"}, changed)
    connector.alter_offsets({"file": "/a"}, changed)
    for each, offset in changed.items():
        if offset is None:
            del stored[each]
        else:
            stored[each] = offset
