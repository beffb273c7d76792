"""A worker of a group starts its Spark before it has a connector, and answers requests meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# A process of its own: Spark has one session in each.
_WORKER = """
import json, sys, time
from pathlib import Path

import httpx

# The folder of the tests, for their doubles.
sys.path.append(sys.argv[2])

from headrace.connect.errors import RetriableError
from headrace.plugins import checked_worker
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.task.slot_work import SlotTicket
from headrace.worker.data_plane import lazy_engine, started_ahead
from rest.fake_herder import FakeHerder

folder = sys.argv[1]
config = checked_worker(
    {
        "key.converter": "string",
        "value.converter": "string",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
)
server = RestServer(FakeHerder(), RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
server.start()
engine = lazy_engine(config)
ahead = started_ahead(engine, [])
answers = 0
with httpx.Client(base_url=server.url, timeout=30) as client:
    while not ahead.done():
        assert client.get("connectors").is_success
        answers += 1
        time.sleep(0.02)
ahead.result()

from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()

def answer(batches):
    import late_module
    import pyarrow as pa

    for each in batches:
        yield pa.RecordBatch.from_pydict({"pid": [late_module.ANSWER] * each.num_rows})

sys.path.insert(0, folder)
Path(folder, "late_module.py").write_text("ANSWER = 42")
engine.require(["late_module"])
lost = ""
try:
    engine.run([SlotTicket(host="127.0.0.1", port=1, secret=b"s", token="t")])
except RetriableError as error:
    lost = str(error)
[row] = session.range(1).mapInArrow(answer, "pid long").collect()
same = SparkSession.builder.getOrCreate() is session
print(json.dumps({"answers": answers, "lost": lost, "shipped": row.pid, "same": same}))
engine.close()
server.close()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_worker_answers_while_its_spark_starts_and_runs_in_what_was_started(
    tmp_path: Path,
) -> None:
    """It is not held up by the start; and what a later connector needs is shipped to the same session."""
    done = subprocess.run(
        [sys.executable, "-c", _WORKER, str(tmp_path), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])

    # Of some seconds in which it asks without a break.
    assert seen["answers"] > 20
    assert "Slot 0 could not start" in seen["lost"]
    assert (42, True) == (seen["shipped"], seen["same"])
