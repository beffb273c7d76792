"""A query from Kafka into a table, run again whenever it fails: a program whose processes are killed.

Its argument is JSON: the ``master``, Spark's ``conf``, the query's ``options``, and a ``folder``. When a file ``finish``
appears there, it reads what there is now, writes what the table holds to ``found.json``, and ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException

from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from spark.kafka.tables import Table
from waiting import until

WHERE_AND_WHAT = "concat_ws('/', topic, partition, offset, cast(value as string)) as value"


def main() -> None:
    """See the module."""
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    settings = SparkSettings(master=asked["master"], conf=asked["conf"])
    engine = SparkEngine(settings, slots=1, sql=True)
    table = Table(engine.session(), folder, asked["options"], what=WHERE_AND_WHAT)
    finish = folder / "finish"

    def on_and_on() -> None:
        query = table.start()
        until(lambda: finish.exists() or not query.isActive, seconds=600)
        query.stop()
        query.awaitTermination()

    while not finish.exists():
        _tried(on_and_on, folder)
    while not _tried(lambda: table.run(maxOffsetsPerTrigger="1000000000"), folder):
        pass
    (folder / "found.json").write_text(json.dumps(table.values()))
    engine.close()


def _tried(run: Callable[[], object], folder: Path) -> bool:
    try:
        run()
    except StreamingQueryException as error:
        with (folder / "failures").open("a") as log:
            log.write(f"{error}\n{'-' * 80}\n")
        return False
    return True


if __name__ == "__main__":
    main()
