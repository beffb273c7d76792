"""Functions from DataFrame to DataFrame as users write them, right ones and wrong ones."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)


def doubled(frame: DataFrame) -> DataFrame:
    """Row by row."""
    return frame.withColumn("twice", F.col("a") * 2).drop("b")


def of_record(frame: DataFrame) -> DataFrame:
    """Takes what is beside the value."""
    return frame.withColumn("from", F.col("record.topic"))


def numbered(frame: DataFrame) -> DataFrame:
    """An expression that would fail for text that is no number, used twice."""
    number = frame.withColumn("number", F.expr("CAST(b AS INT)"))
    return number.withColumn("next", F.col("number") + 1).withColumn("last", F.col("number") - 1)


def parsed(frame: DataFrame) -> DataFrame:
    """Of a value without fields."""
    return frame.withColumn("length", F.length("value"))


def without_row(frame: DataFrame) -> DataFrame:
    """Loses where a record came from."""
    return frame.select("a")


def without_fields(frame: DataFrame) -> DataFrame:
    """Leaves nothing for the value."""
    return frame.drop("a", "b")


def two_of_one_name(frame: DataFrame) -> DataFrame:
    """Which of them is the field is not to be told."""
    return frame.select("*", F.lit(1).alias("a"))


def counted(frame: DataFrame) -> DataFrame:
    """Runs a job."""
    return frame.withColumn("count", F.lit(frame.count()))


def nothing(_: DataFrame) -> None:
    """Forgot to return."""


def raising(_: DataFrame) -> DataFrame:
    """Fails."""
    raise KeyError("no such thing")


def misspelt(frame: DataFrame) -> DataFrame:
    """Names a column that is not there."""
    return frame.withColumn("c", F.col("aa"))


def spanning(frame: DataFrame) -> DataFrame:
    """Has a type that Kafka Connect has not."""
    return frame.withColumn("span", F.expr("INTERVAL 1 DAY"))


def filtered(frame: DataFrame) -> DataFrame:
    """Drops rows."""
    return frame.filter("a > 1")


def ordered(frame: DataFrame) -> DataFrame:
    """Sorts."""
    return frame.sortWithinPartitions("a")


def shuffled(frame: DataFrame) -> DataFrame:
    """Moves rows."""
    return frame.repartition(2)


def merged(frame: DataFrame) -> DataFrame:
    """Moves rows without a shuffle."""
    return frame.coalesce(1)


def summed(frame: DataFrame) -> DataFrame:
    """Aggregates."""
    return frame.dropDuplicates(["a"])


def joined(frame: DataFrame) -> DataFrame:
    """Joins."""
    return frame.join(frame.sparkSession.range(3), F.col("a") == F.col("id"))


def limited(frame: DataFrame) -> DataFrame:
    """Limits."""
    return frame.limit(3)


def sampled(frame: DataFrame) -> DataFrame:
    """Samples."""
    return frame.sample(0.5)


def exploded(frame: DataFrame) -> DataFrame:
    """Makes several rows of one."""
    return frame.withColumn("each", F.explode(F.array("a", "a")))


def united(frame: DataFrame) -> DataFrame:
    """Appends."""
    return frame.union(frame)


def elsewhere(frame: DataFrame) -> DataFrame:
    """Reads something else."""
    return frame.sparkSession.range(3).select(
        F.col("id").alias("a"), F.struct(F.lit(0).alias("kind")).alias("_headrace")
    )


def in_python(frame: DataFrame) -> DataFrame:
    """Calls Python for each row."""
    return frame.withColumn("c", F.udf(lambda text: text, "string")("b"))


def mapped(frame: DataFrame) -> DataFrame:
    """Calls Python for whole batches."""
    return frame.mapInArrow(lambda batches: batches, frame.schema)


def as_it_is(frame: DataFrame) -> DataFrame:
    """Nothing is changed."""
    return frame


def sometimes_null(frame: DataFrame) -> DataFrame:
    """A field loses some of its values."""
    return frame.withColumn("a", F.nullif("a", F.lit("x")))


def tripled(frame: DataFrame) -> DataFrame:
    """Row by row."""
    return frame.withColumn("thrice", F.col("a") * 3)


def cached(frame: DataFrame) -> DataFrame:
    """Keeps what it was given."""
    return frame.cache()


def exiting(_: DataFrame) -> DataFrame:
    """Ends the process."""
    raise SystemExit("enough")


def rowless(frame: DataFrame) -> DataFrame:
    """Has nothing where the row was."""
    return frame.withColumn("_headrace", F.lit(None))


def sometimes_rowless(frame: DataFrame) -> DataFrame:
    """Has the row of some records only."""
    return frame.withColumn("_headrace", F.when(F.col("a") != 2, F.col("_headrace")))
