"""`headrace spark env`: what a session of one's own finds in its environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.spark import env
from headrace.jvm.java import find_java, spark_python


def exported() -> dict[str, str]:
    """What a shell gets."""
    result = CliRunner().invoke(env, standalone_mode=False)
    words = [shlex.split(line) for line in result.stdout.splitlines()]
    assert {"export"} == {word for word, _ in words}
    return dict(assignment.split("=", 1) for _, assignment in words)


def test_spark_finds_java_python_and_itself():
    """Java is one that Spark's start does not fail on, whatever the machine has."""
    found = exported()

    command = [f"{found['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    assert 0 == subprocess.run(command, capture_output=True).returncode
    path = found.get("PATH", os.environ["PATH"])
    assert sys.executable == shutil.which(found["PYSPARK_PYTHON"], path=path)
    assert (Path(found["SPARK_HOME"]) / "sbin" / "start-connect-server.sh").is_file()


@pytest.mark.parametrize(
    ("executable", "path", "expected"),
    [
        ("/v/bin/python3", "/bin", {"PYSPARK_PYTHON": "/v/bin/python3"}),
        ("/a b/bin/python3", "/bin", {"PYSPARK_PYTHON": "python3", "PATH": "/a b/bin:/bin"}),
        ("/a b/bin/python3", "", {"PYSPARK_PYTHON": "python3", "PATH": "/a b/bin"}),
    ],
)
def test_a_python_in_a_folder_with_a_space_is_found_by_its_name(
    executable: str, path: str, expected: dict[str, str]
):
    """Spark hands the command to a shell as it is."""
    assert expected == spark_python(executable, path)


def test_what_was_chosen_already_stays(monkeypatch: pytest.MonkeyPatch):
    """Where Spark listens and logs; its Java and Python are what headrace needs."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.7")
    monkeypatch.setenv("JAVA_HOME", "")
    find_java.cache_clear()

    found = exported()

    assert "10.0.0.7" == found["SPARK_LOCAL_IP"]
    assert (Path(found["JAVA_HOME"]) / "bin" / "java").is_file()
