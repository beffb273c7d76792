"""A transformation that asks a service which is away for a while; for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.connect.errors import RetriableError
from headrace.connect.record import SourceRecord


class Service:
    """What is asked; *is_there* is the test's to say."""

    is_there: Callable[[], bool] = staticmethod(lambda: False)


class Asking:
    """Asks the service about records of the value ``b``."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing is set."""

    def apply(self, record: SourceRecord) -> SourceRecord:
        """The record, when the service has answered."""
        if record.value == "b" and not Service.is_there():
            raise RetriableError("The service is away.")
        return record
