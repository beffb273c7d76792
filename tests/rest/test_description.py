"""``/openapi.json`` describes everything that is answered, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest

from headrace import __version__
from headrace.rest.app import Route, admin_routes, description_routes, herder_routes, metrics_routes
from headrace.rest.request import ApiRequest
from rest.described import DESCRIBED, OPERATIONS, own_levels, parameters, resolved
from rest.fake_herder import WORKER, FakeHerder, worker

BODIES = [
    (method, path)
    for method, path in OPERATIONS
    if "requestBody" in DESCRIBED["paths"][path][method]
]
CLOSED = [each for each in BODIES if each[1].split("/")[-1] in {"connectors", "offsets", "undo"}]


def routes(herder: FakeHerder) -> list[Route]:
    """All that a worker answers."""
    own = [*herder_routes(herder), *description_routes()]
    return [*own, *metrics_routes(str), *admin_routes(own_levels(), herder)]


def body_of(method: str, path: str) -> dict[str, Any]:
    """The JSON that an operation takes: its schema and an example."""
    return DESCRIBED["paths"][path][method]["requestBody"]["content"]["application/json"]


def references(part: object) -> Iterator[str]:
    """Every ``$ref`` within."""
    return iter(re.findall(r'"\$ref": "#/components/([^"]+)"', json.dumps(part)))


class Noting(dict[str, list[str]]):
    """A query without parameters, which notes the names that are looked up."""

    def __init__(self) -> None:
        self.asked_for = set[str]()

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 (as a dictionary's)
        """Note it."""
        self.asked_for.add(key)
        return super().get(key, cast("Any", default))


def test_every_route_is_described(herder: FakeHerder):
    """Each path and method of the table of routes but those of other workers, as in Kafka Connect's description, and no other."""
    answered = {
        (word.lower(), each.path)
        for each in routes(herder)
        for word in each.methods.keys() - each.internal
    }

    assert answered == {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in OPERATIONS}


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_parameter_is_described(herder: FakeHerder, method: str, path: str):
    """Those of the path, and those that the operation's handler looks for in the query."""
    route = next(e for e in routes(herder) if e.path == re.sub(r"\{\w+\}", "{}", path))
    names = {"connector": "c", "task": "0", "plugin": "a.Files", "logger": "root", "worker": WORKER}
    herder.group = {WORKER: worker()}
    found = [each["name"] for each in parameters(method, path, "path")]
    example = body_of(method, path)["example"] if (method, path) in BODIES else None
    query = Noting()
    api_request = ApiRequest(
        names=[names[e] for e in found], query=query, body=json.dumps(example).encode()
    )
    assert re.findall(r"\{(\w+)\}", path) == found

    route.handler(method.upper())(api_request)

    assert query.asked_for == {each["name"] for each in parameters(method, path, "query")}


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_every_field_of_a_body_is_described(client: httpx.Client, method: str, path: str):
    """Those that the refusal of another field names."""
    at = path.replace("{connector}", "c")
    refusal = client.request(method, at, json={"other": 1}).json()["message"]

    known = re.findall(r'"(\w+)"', refusal.partition("known properties: ")[2])
    assert sorted(known) == sorted(resolved(body_of(method, path)["schema"])["properties"])


def test_every_component_is_used():
    """What a part refers to is there, and nothing is that no part refers to."""
    kinds = {each: DESCRIBED["components"][each] for each in ("parameters", "schemas", "responses")}
    there = {f"{kind}/{name}" for kind, parts in kinds.items() for name in parts}

    assert there == {each for each in references(DESCRIBED) if not each.startswith("headers/")}


def test_it_is_answered(client: httpx.Client):
    """As it lies in the package, with the version of headrace."""
    answer = client.get("/openapi.json")

    assert DESCRIBED == answer.json()
    assert "application/json" == answer.headers["content-type"]
    assert __version__ == DESCRIBED["info"]["version"]


def test_admin_is_marked():
    """Other listeners may answer these, and no others."""
    marked = {p for m, p in OPERATIONS if "admin" in DESCRIBED["paths"][p][m]["tags"]}

    assert marked == {path for _, path in OPERATIONS if path.startswith("/admin/")}
