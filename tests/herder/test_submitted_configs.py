"""Configurations as they were submitted."""

from __future__ import annotations

from headrace.config.providers import resolution
from headrace.herder.config_masking import unresolved
from headrace.herder.connectors import patched
from headrace.observe.secret_masking import Secrets


def test_tasks_show_placeholders_for_what_they_stand_for() -> None:
    """Under their own key, under another one, and nowhere else, though a value looks the same."""
    submitted = {"password": "${file:s:p}", "port": "${file:s:n}", "tasks.max": "1", "none": None}
    resolved = {"password": "hunter2", "port": "1", "tasks.max": "1"}
    task = {**resolved, "login": "hunter2", "task.class": "x:T"}

    assert {
        "password": "${file:s:p}",
        "port": "${file:s:n}",
        "tasks.max": "1",
        "login": "${file:s:p}",
        "task.class": "x:T",
    } == unresolved(task, submitted=submitted, resolved=resolved)


def test_tasks_show_placeholders_within_what_is_put_together() -> None:
    """As in an address with a password."""
    given = {"password": "${file:s:p}"}
    secrets = Secrets(values={"hunter2": "${file:s:p}"})
    task = {"url": "https://me:hunter2@there"}

    assert {"url": "https://me:${file:s:p}@there"} == unresolved(
        task, submitted=given, resolved={"password": "hunter2"}, secrets=secrets
    )


def test_a_patch_takes_out_what_is_null() -> None:
    """Null that was stored before stays, and is no setting for the connector."""
    merged = patched({"a": "1", "b": "2", "c": None}, {"b": None, "d": "4"})

    assert {"a": "1", "c": None, "d": "4"} == merged
    assert {"a": "1", "d": "4"} == resolution(merged, {}).props()
