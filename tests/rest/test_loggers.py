"""``/admin/loggers`` through a real socket, on the real hierarchy of this process's loggers."""

from __future__ import annotations

import logging
import time

import httpx
import pytest

from rest.conftest import Serve
from rest.fake_herder import FakeHerder

NAME = "tests.rest.loggers"


@pytest.fixture(autouse=True)
def logger():
    """A logger of the tests' own, without a level before and after."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.NOTSET)
    yield logger
    logger.setLevel(logging.NOTSET)


def put(client: httpx.Client, level: object, name: str = NAME, query: str = "") -> httpx.Response:
    """What a change of a logger's level is answered with."""
    return client.put(f"/admin/loggers/{name}{query}", json={"level": level})


def test_a_level_really_changes(client: httpx.Client, logger: logging.Logger):
    """The logger logs, the answer names it, and reading shows the level and the time."""
    began = time.time() * 1000
    answer = put(client, "debug")

    assert (200, f'["{NAME}"]') == (answer.status_code, answer.text)
    assert logger.isEnabledFor(logging.DEBUG)
    shown = client.get(f"/admin/loggers/{NAME}").json()
    assert ["level", "last_modified"] == list(shown)
    assert "DEBUG" == shown["level"]
    assert began - 1 <= shown["last_modified"] <= time.time() * 1000
    assert shown == client.get("/admin/loggers").json()[NAME]


def test_the_same_level_again_changes_no_one(client: httpx.Client):
    """The answer is an empty list."""
    put(client, "ERROR")

    assert "[]" == put(client, "ERROR").text


@pytest.mark.parametrize(
    ("scope", "status"),
    [("worker", 200), ("WORKER", 200), ("cluster", 204), ("Cluster", 204), ("galaxy", 200)],
)
def test_scope(client: httpx.Client, logger: logging.Logger, scope: str, status: int):
    """In any case; the cluster's answer is empty, an unknown scope is the worker's."""
    answer = put(client, "TRACE", query=f"?scope={scope}")

    assert (status, status == 204) == (answer.status_code, answer.content == b"")
    assert 5 == logger.level


def test_a_group_is_told_of_the_level(
    herder: FakeHerder, client: httpx.Client, logger: logging.Logger
):
    """And this worker sets it when it reads of it, as the others do."""
    herder.shares_levels = True

    answer = put(client, "debug", query="?scope=cluster")

    assert (204, b"") == (answer.status_code, answer.content)
    assert [("share_level", (NAME, "debug"))] == herder.calls
    assert logging.NOTSET == logger.level


@pytest.mark.parametrize("body", [{}, {"level": ""}, {"level": "LOUD"}])
def test_a_group_is_not_told_of_what_is_no_level(
    herder: FakeHerder, client: httpx.Client, body: object
):
    """The answers are those without a scope."""
    herder.shares_levels = True
    answers = [
        client.put(f"/admin/loggers/{NAME}{query}", json=body) for query in ("", "?scope=cluster")
    ]

    assert answers[0].json() == answers[1].json()
    assert answers[0].status_code == answers[1].status_code >= 400
    assert [] == herder.calls


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": None}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": ""}, 500, "Illegal null or empty Level name."),
        ({"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
        ({"level": 5}, 404, "invalid log level '5'."),
    ],
)
def test_wrong_levels(
    client: httpx.Client, logger: logging.Logger, *, body: object, status: int, message: str
):
    """In Kafka Connect's words; the level stays."""
    answer = client.put(f"/admin/loggers/{NAME}", json=body)

    assert (status, {"error_code": status, "message": message}) == (
        answer.status_code,
        answer.json(),
    )
    assert logging.NOTSET == logger.level


def test_unknown_loggers(client: httpx.Client):
    """404, and the root by its name."""
    answer = client.get("/admin/loggers/no%2Fsuch")

    assert (404, "Logger no/such not found.") == (answer.status_code, answer.json()["message"])
    assert client.get("/admin/loggers/root").json()["level"]


def test_admin_listeners(serve: Serve):
    """Not set they are shared, empty there are none, named they are apart."""
    shared, off = serve(), serve(admin_listeners="")

    assert [200, 404] == [each.get("/admin/loggers").status_code for each in (shared, off)]
