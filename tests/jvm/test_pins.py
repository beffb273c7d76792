"""Sets of jars, pinned byte for byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headrace.jvm.jars import JAR_SETS, Pin, faults, pins_of

CONTENT = b"a jar"
PIN = Pin(
    organisation="org.example",
    name="thing",
    revision="1.0",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


MAIN_JARS = {
    "broker": "kafka_2.13-4.3.1.jar",
    "connect": "kafka_2.13-4.3.1.jar",
    "spark-kafka": "spark-sql-kafka-0-10_2.13-4.2.0.jar",
}


@pytest.mark.parametrize("jar_set", JAR_SETS)
def test_sets_are_whole(jar_set: str):
    """Every set names each jar once, with a digest of the right length, and has what it is for in it."""
    pins = pins_of(jar_set)

    assert len(pins) == len({pin.file_name for pin in pins})
    assert {64} == {len(pin.sha256) for pin in pins}
    assert MAIN_JARS[jar_set] in {pin.file_name for pin in pins}


def test_pinned_jar(tmp_path: Path):
    """The very bytes are no fault."""
    (tmp_path / "thing-1.0.jar").write_bytes(CONTENT)

    assert [] == list(faults(tmp_path, [PIN]))


def test_other_jar(tmp_path: Path):
    """Other bytes under the same name are reported with their digest."""
    (tmp_path / "thing-1.0.jar").write_bytes(b"another jar")

    (fault,) = faults(tmp_path, [PIN])

    assert fault.startswith("thing-1.0.jar is not the pinned file: its SHA-256 is ")


def test_missing_jar(tmp_path: Path):
    """A jar that is not there is named."""
    assert ["thing-1.0.jar is missing."] == list(faults(tmp_path, [PIN]))
