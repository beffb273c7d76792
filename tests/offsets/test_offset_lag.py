"""How much there is behind offsets, as connectors tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from doubles.puppets import PolledPuppet
from headrace.connect.errors import ConnectError, OffsetsError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.herder.answers import ConnectorOffset, PartitionLag
from headrace.herder.errors import ServerError
from headrace.observe.secret_masking import Secrets
from headrace.offsets.administration import partition_lags
from runtime.desk import SPEC

A = SourcePartition(filename="a")
B = SourcePartition(filename="b")
OFFSETS = [
    ConnectorOffset(partition=A, offset={"position": 1}),
    ConnectorOffset(partition=B, offset={"position": 5}),
]


class Telling(PolledPuppet):
    """Knows of one file; or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """Ten bytes in all."""
        if self._error:
            raise self._error
        position = offsets[A]["position"]
        assert isinstance(position, int)
        return {A: 10 - position}


def test_every_offset_is_reported_with_its_lag():
    """None for a partition that the connector leaves out."""
    assert [
        PartitionLag(partition=A, offset={"position": 1}, lag=9),
        PartitionLag(partition=B, offset={"position": 5}, lag=None),
    ] == partition_lags(replace(SPEC, connector=Telling()), OFFSETS)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OffsetsError("It is away."), "Failed to read the lag of source connector c: It is away."),
        (ValueError("hunter2"), "Failed to read the lag of source connector c"),
    ],
)
def test_a_connector_that_fails_is_an_error(error: Exception, told: str):
    """Its own words only where they are meant for people."""
    with pytest.raises(ServerError) as caught:
        partition_lags(replace(SPEC, connector=Telling(error)), OFFSETS)

    assert told == str(caught.value)
    assert isinstance(caught.value, ConnectError)


def test_a_connector_that_fails_shows_no_secret(caplog: pytest.LogCaptureFixture):
    """Neither to the one who asked, nor in the log."""
    spec = replace(
        SPEC,
        connector=Telling(OffsetsError("No entry for hunter2.")),
        secrets=Secrets(values={"hunter2": "[hidden]"}),
    )
    with pytest.raises(ServerError, match=r"No entry for \[hidden\]") as caught:
        partition_lags(spec, OFFSETS)

    assert caplog.records
    assert "hunter2" not in caplog.text + str(caught.value.__cause__)
