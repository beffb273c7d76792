"""`headrace run` in a pipe: standard input becomes records, and each line of the log is JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.scene import Scene
from end_to_end.telling_task import PRINTED, TOLD
from headrace.testing.judge import committed_records

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_standard_input_is_read_to_its_end_and_told_in_json(bootstrap: str, tmp_path: Path) -> None:
    """By a slot, which is another process: the input is the worker's, and the form of its lines, too.

    What the slot's task prints is no JSON, and shows no secret.
    """
    scene = Scene(bootstrap, tmp_path, f"standard-input-{os.getpid()}")
    scene.worker |= {
        "value.converter": "string",
        "plugin.modules": "telling_task",
        "config.providers": "env",
        "config.providers.env.class": "env",
    }
    worker, connector = map(Path, scene.write_configs())
    connector.write_text(
        json.dumps(
            {
                "name": scene.topic,
                "connector.class": "telling_task:TellingConnector",
                "topic": scene.topic,
                "a.secret": "${env:HEADRACE_TEST_SECRET}",
            }
        )
    )
    # Java tells on stderr that it has seen this variable, whoever has set it.
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_TOOL_OPTIONS"}
    ran = subprocess.run(
        [sys.executable, "-m", "headrace", "run", worker, connector, "--once", "--json-logs"],
        input="a\nb\n",
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
        timeout=150,
        env={
            **environment,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
            ),
            "HEADRACE_TEST_SECRET": "Gehe1mnis-4711",
        },
    )

    assert 0 == ran.returncode, ran.stderr
    assert [b"a", b"b"] == [each.value for each in committed_records(bootstrap, scene.topic)]
    assert "Gehe1mnis" not in ran.stderr + ran.stdout
    (printed,) = [line for line in ran.stderr.splitlines() if line.startswith(PRINTED)]
    assert "'a.secret': '${env:HEADRACE_TEST_SECRET}'" in printed
    # Some versions of Java warn of an option of Spark's, before anything of ours could keep them from it.
    others = ("WARNING: ", PRINTED)
    said = [line for line in ran.stderr.splitlines() if not line.startswith(others)]
    lines = [json.loads(line) for line in said]
    assert all({"message", "level", "logger", "timestamp"} <= line.keys() for line in lines)
    (told,) = [line for line in lines if line["message"] == TOLD]
    assert (scene.topic, 0) == (told["connector"], told["task"])
    assert "A micro-batch has ended" in [line["message"] for line in lines]
