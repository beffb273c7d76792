"""A program: a SQL step on a Spark Connect server whose address is its argument; prints what it finds as JSON."""

from __future__ import annotations

import json
import sys

from headrace.slot.sql_step import SqlStep
from headrace.spark.session import SparkSettings, open_session, stop_session
from headrace.spark.sql_check import sql_problems
from spark.sql_frames import FIELDS, frame_schema, row, spark_schema, values_of

ROWS = [row({"a": 1, "b": "x"}, keep=False), row({"a": 2, "b": "7"}), row({"a": 3, "b": "8"})]
RIGHT = {"select": ("a + 1 AS c", "record.topic AS t"), "where": "CAST(b AS INT) > 7"}
WRONG = (
    SqlStep(select=("a", "sum(a) AS s"), where="b > "),
    SqlStep(select=("c",)),
    SqlStep(function="spark.sql_functions:ordered"),
    SqlStep(function="spark.sql_functions:counted"),
    SqlStep(function="spark.sql_functions:raising"),
)


def main() -> None:
    """Ask, print, and leave nothing open."""
    session = open_session(SparkSettings(remote=sys.argv[1]))
    try:
        schema = spark_schema(session, frame_schema(FIELDS))
        told = [each for step in WRONG for each in sql_problems(session, schema, step)]
        doubled = values_of(session, ROWS[1:], function="spark.sql_functions:doubled")
        found = {"left": [values_of(session, ROWS, **RIGHT), doubled], "told": told}
        sys.stdout.write(f"{json.dumps(found)}\n")
    finally:
        stop_session(session)


if __name__ == "__main__":
    main()
