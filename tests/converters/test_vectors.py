"""Our converters against the table of values and bytes, which needs no Java."""

from __future__ import annotations

import pytest

from judges.comparing import ours
from judges.java_judge import Refusal
from judges.vectors import VECTORS, Vector


@pytest.mark.parametrize("vector", VECTORS)
def test_every_vector(vector: Vector):
    """Its bytes, or an error that begins with Connect's sentence."""
    (answer,) = ours(vector.name, [vector.told], **vector.config)

    found = answer.reason[: len(vector.refused or "")] if isinstance(answer, Refusal) else answer
    assert (vector.refused or vector.made) == found
