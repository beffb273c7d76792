"""The table of values and bytes against Kafka Connect."""

from __future__ import annotations

import pytest

from headrace.converters import JAVA_NAMES
from judges.java_judge import JavaJudge, Refusal
from judges.vectors import VECTORS

pytestmark = pytest.mark.broker

JAVA = {name: java for java, name in JAVA_NAMES.items()}


def test_every_vector(judge: JavaJudge):
    """Each line is what Connect writes, or begins the sentence with which it refuses."""
    for each in VECTORS:
        (answer,) = judge.converted(JAVA[each.name], [each.told], **each.config)

        found = answer.reason[: len(each.refused or "")] if isinstance(answer, Refusal) else answer
        assert (each.refused or each.made, each) == (found, each)
