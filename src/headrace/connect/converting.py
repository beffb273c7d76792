"""The contract of converters, which turn columns of Connect values into columns of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import pyarrow as pa

from headrace.connect.record import Header
from headrace.connect.schema import Schema


class Converter(Protocol):
    """Turns keys or values into what Kafka stores.

    Made without arguments and configured once per slot and micro-batch, then called on the slot's thread for every
    batch. Its class may have a ``config_class``, a :class:`~headrace.connect.config.Config` that declares its settings,
    and a ``version``; both are used when a configuration is validated. The same applies to header converters.
    """

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take the converter's own settings, without their ``key.converter.`` or ``value.converter.``.

        Raises :class:`~headrace.connect.errors.ConfigError` for a setting that is wrong.
        """
        ...

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The bytes of each of *values*, in order; a null is a tombstone or a missing key.

        Must not change its argument. Raises :class:`~headrace.connect.errors.RecordError` with ``row``
        set to the first row that cannot be converted; after any other exception the runtime searches for that row.
        """
        ...


class HeaderConverter(Protocol):
    """Turns the value of one header into bytes; called per header, only for records that have some."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the converter's own settings, without the ``header.converter.`` prefix."""
        ...

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """The bytes of *header*'s value; raises :class:`~headrace.connect.errors.RecordError`."""
        ...


@runtime_checkable
class ColumnarHeaderConverter(HeaderConverter, Protocol):
    """A header converter that can turn many headers of one name into bytes at once."""

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
        """What ``encode_header`` gives for each of *values*, in order.

        Raises :class:`~headrace.connect.errors.RecordError` with ``row``.
        """
        ...
