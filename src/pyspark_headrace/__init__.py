"""Makes ``format("headrace-kafka")`` known to Spark, which looks for ``DefaultSource`` in modules named ``pyspark_…``."""

from headrace.spark.kafka.data_source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
