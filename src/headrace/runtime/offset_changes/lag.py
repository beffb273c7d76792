"""How much there is behind the offsets of a connector, as the connector tells it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.connect.errors import ConnectError
from headrace.runtime.herder.answers import ConnectorOffset, PartitionLag
from headrace.runtime.herder.errors import ServerError
from headrace.runtime.services import RunSpec

_log = logging.getLogger(__name__)


def partition_lags(spec: RunSpec, offsets: Sequence[ConnectorOffset]) -> Sequence[PartitionLag]:
    """Each of *offsets* with its lag; *spec* holds a fresh connector, which is used up.

    Blocks as long as the connector looks at its source. Raises
    :class:`~headrace.runtime.herder.errors.ServerError` when that fails.
    """
    known = {each.partition: each.offset for each in offsets}
    try:
        lags = spec.connector.lag(spec.props, known)
    except Exception as error:
        told = f"Failed to tell the lag of source connector {spec.name}"
        _log.exception("%s", told)
        # What is no error of the contract may show anything.
        raise ServerError(
            f"{told}: {error}" if isinstance(error, ConnectError) else told
        ) from error
    return [
        PartitionLag(partition=partition, offset=offset, lag=lags.get(partition))
        for partition, offset in known.items()
    ]
