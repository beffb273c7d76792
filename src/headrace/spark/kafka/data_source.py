"""``format("headrace-kafka")``: what Spark makes of it, a stream or a bounded read. Light to import: Spark does so to find it."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from headrace.connect.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headrace.spark.kafka.options import KafkaSourceOptions

FORMAT: Final = "headrace-kafka"
WHERE: Final = f'The source format("{FORMAT}")'

HEADERS: Final = "headers"
TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key: string, value: binary>>",
}
"""The columns of the source, in order, with Spark's types; headers only where they are asked for."""


class KafkaDataSource(DataSource):
    """Reads Kafka topics whose partitions come and go (FLIP-288), as streams and as bounded reads.

    Spark makes an instance for each query, from its options, and others in the tasks' Python processes. Raises
    :class:`~headrace.connect.errors.ConfigError` for options that are wrong, all at once.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        _ = self._checked

    @classmethod
    def name(cls) -> str:
        """What users give to ``format``."""
        return FORMAT

    @cached_property
    def _checked(self) -> KafkaSourceOptions:
        from headrace.spark.kafka.subscription import checked_options  # noqa: PLC0415 (see the module)

        return checked_options(dict(self.options))

    def schema(self) -> str:
        """The columns, fixed by the options ``columns`` and ``includeHeaders``."""
        return ", ".join(f"{name} {TYPES[name]}" for name in self._checked.read_columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``: up to where the options say, by default where the topics end now."""
        from headrace.spark.kafka.bounded import KafkaReader  # noqa: PLC0415

        self._refuse_other(schema)
        return KafkaReader(self._checked)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """For ``spark.readStream``."""
        from headrace.spark.kafka.stream import KafkaStreamReader  # noqa: PLC0415

        self._refuse_other(schema)
        return KafkaStreamReader(self._checked)

    def _refuse_other(self, schema: StructType) -> None:
        given = [(each.name, each.dataType.simpleString()) for each in schema.fields]
        own = [(name, TYPES[name].replace(" ", "")) for name in self._checked.read_columns]
        if given != own:
            raise ConfigError(
                [
                    (
                        "schema",
                        f"The columns are {self.schema()}; leave schema(…) out, or choose them with columns.",
                    )
                ],
                where=WHERE,
            )
