"""What the figures were measured on, without saying whose machine it is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import confluent_kafka

from headrace.jvm.jars import pins_of
from headrace.jvm.java import find_java


def machine() -> str:
    """Cores, memory and kernel."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _lines("/proc/cpuinfo")
            if "model name" in line
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{cores} cores ({model}), {memory:.0f} GiB of memory, Linux {kernel}"


def versions() -> str:
    """Everything that takes part, by its version."""
    kafka = next(pin.revision for pin in pins_of("connect") if pin.name == "kafka-clients")
    return ", ".join(
        (
            f"headrace {version('headrace') if _installed() else 'from its source'}",
            f"Python {platform.python_version()}",
            f"PySpark {version('pyspark')}",
            f"confluent-kafka {version('confluent-kafka')}",
            f"librdkafka {confluent_kafka.libversion()[0]}",
            f"PyArrow {version('pyarrow')}",
            f"Kafka and Kafka Connect {kafka}",
            f"Java {find_java().major}",
        )
    )


def _installed() -> bool:
    try:
        version("headrace")
    except PackageNotFoundError:
        return False
    return True


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).is_file() else []
