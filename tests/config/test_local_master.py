"""How many tasks a local Spark runs at once, and what is reported when they are too few."""

from __future__ import annotations

import pytest

from headrace.config.spark_cores import local_cores, machine_cores, master_problem, shortage


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        (" local[3] ", 3),
        ("local[3 ,2]", 3),
        ("local[3,2]", 3),
        ("local[3, 2]", 3),
        ("local[*]", 8),
        ("local[*,4]", 8),
        ("local-cluster[2,2,1024]", None),
        ("spark://host:7077", None),
        ("sc://host", None),
        ("yarn", None),
        ("", None),
    ],
)
def test_only_a_local_master_says_how_many_tasks_run_at_once(
    master: str, cores: int | None
) -> None:
    """As Spark reads them; the machine has 8 cores here."""
    assert cores == local_cores(master, machine=8)


def test_a_machine_that_is_not_known_has_any_number_of_cores() -> None:
    """A session of somebody else may run elsewhere."""
    assert local_cores("local[*]", machine=None) is None
    assert shortage("local[*]", slots=99, machine=None) is None
    assert machine_cores() > 0


@pytest.mark.parametrize("master", ["local[2]", "local[3]", "spark://host:7077"])
def test_as_many_cores_as_slots_or_more_are_fine(master: str) -> None:
    """So is what cannot be told."""
    assert shortage(master, slots=2, machine=1) is None


def test_the_sentence_says_what_to_change() -> None:
    """Either side of it."""
    assert (
        "local runs 1 task at once, fewer than headrace.slots says (2): make it local[2], or lower "
        "headrace.slots to 1."
    ) == shortage("local", slots=2, machine=8)
    assert "on this machine" in (shortage("local[*]", slots=9, machine=8) or "")


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[2, 4]",
        "local[*]",
        "local[*,4]",
        "local-cluster[2, 3,1024]",
        "yarn",
        "spark://one:7077,two:7077",
        "k8s://https://host:6443",
    ],
)
def test_every_form_of_a_master_that_spark_takes_is_taken(master: str) -> None:
    """With the spaces that Spark accepts."""
    assert master_problem(master) is None


@pytest.mark.parametrize(
    "master",
    [
        "locl[2]",
        "local[two]",
        "local[ 2 ]",
        "local[2",
        "local-cluster[2]",
        "LOCAL",
        "yarn-client",
        "spark:host:7077",
        "mesos://host:5050",
        "sc://host",
    ],
)
def test_a_master_that_no_spark_takes_has_a_sentence(master: str) -> None:
    """It would be tried for a minute, each time with Java's traces."""
    said = master_problem(master) or ""
    assert said.startswith(f"Spark does not know the master {master}: it must be local, local[N]")
