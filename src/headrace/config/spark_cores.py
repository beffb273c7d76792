"""Whether Spark takes a master, how many tasks it runs at once there, and whether a worker's slots need more."""

from __future__ import annotations

import ipaddress
import os
import re

# As Spark reads it: local[threads] and local[threads,failures]. local-cluster is a cluster.
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)(?:\s*,\s*[0-9]+)?\])?")
_ADDRESS = re.compile(r"(?:spark|sc)://(\[[^]]*\]|[^:/;,]*)")
_CLUSTER = re.compile(
    r"local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]|yarn|(?:spark|k8s)://.*"
)


def master_problem(master: str) -> str | None:
    """Why no Spark takes *master*; ``None`` when it has the form of one. Whether it can be reached is not checked."""
    if _LOCAL.fullmatch(master) or _CLUSTER.fullmatch(master):
        return None
    return (
        f"Spark does not know the master {master}: it must be local, local[N], local[N,failures] or local[*], "
        "local-cluster[workers,cores,MiB], yarn, or begin with spark:// or k8s://."
    )


def local_cores(master: str, *, machine: int | None) -> int | None:
    """How many tasks Spark runs at once with this *master*; ``None`` when *master* does not say.

    *machine* is how many cores Spark's machine has, ``None`` when that is not known.
    """
    found = _LOCAL.fullmatch(master.strip())
    if found is None:
        return None
    threads = found[1] or "1"
    return machine if threads == "*" else int(threads)


def shortage(master: str, *, slots: int, machine: int | None) -> str | None:
    """Why some slots would wait for ever for a core, and what to change; ``None`` when there are enough cores."""
    cores = local_cores(master, machine=machine)
    if cores is None or cores >= slots:
        return None
    tasks = "task" if cores == 1 else "tasks"
    lower = f", or lower headrace.slots to {cores}" if cores else ""
    where = " on this machine" if "*" in master else ""
    return (
        f"{master.strip()} runs {cores} {tasks} at once{where}, fewer than headrace.slots says ({slots}): "
        f"make it local[{slots}]{lower}."
    )


def is_elsewhere(place: str) -> bool:
    """Whether tasks of this master or remote may run on another machine than the worker. Pure."""
    place = place.strip()
    if place == "yarn" or place.startswith("k8s://"):
        return True
    found = _ADDRESS.match(place)
    return found is not None and not is_loopback(found[1])


def is_loopback(host: str) -> bool:
    """Whether *host* means the machine itself; a name that would have to be looked up does not. Pure."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def machine_cores() -> int:
    """The cores that this process may use, as Spark's Java counts them for ``local[*]``."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
