"""What the driver does in Kafka itself."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from headrace.connect.errors import RetriableError
from headrace.runtime.running.driver_commits import fence_owners
from runtime.desk import SPEC


def test_fencing_ends_when_it_is_given_up() -> None:
    """A stop does not wait for a broker that is away; the sentence says what was not done."""
    spec = replace(SPEC, producer={"bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    with pytest.raises(RetriableError, match=r"the fencing of 'g-c-0'.* before the stop"):
        fence_owners(spec, ["g-c-0"], give_up=lambda: True)

    assert time.monotonic() - began < 8.0
