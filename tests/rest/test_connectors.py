"""``/connectors`` through a real socket: statuses, bodies to the byte, and names with any character."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from headrace.herder.answers import TargetState
from headrace.herder.requests import CreateRequest, OffsetChange
from rest.fake_herder import FakeHerder

CONFIG = {"connector.class": "FileStreamSource", "tasks.max": "1"}
INFO_C = (
    '{"name":"c","config":{"connector.class":"FileStreamSource","name":"c"},'
    '"tasks":[{"connector":"c","task":0}],"type":"source"}'
)
STATUS_C = (
    '{"name":"c","connector":{"state":"RUNNING","worker_id":"10.0.0.5:8083","version":"1.0"},'
    '"tasks":[{"id":0,"state":"FAILED","worker_id":"10.0.0.5:8083","version":null}],"type":"source"}'
)
NAMES = [
    "a/b",
    "100%",
    "a\\b",
    "a#b",
    "a?b",
    "é",
    "🎈",
    "..",
    ".",
    "a b",
    "{y}",
    "a;b",
    "%2F",
    "a//b",
]


def in_path(name: str) -> str:
    """*name* as a segment, dots encoded as well: clients resolve them otherwise."""
    return quote(name, safe="").replace(".", "%2E")


def created(client: httpx.Client, **fields: object) -> httpx.Response:
    """What the creation of a connector ``n`` is answered with."""
    return client.post("/connectors", json={"name": "n", "config": CONFIG, **fields})


def test_root_reports_who_the_worker_is(client: httpx.Client):
    """The cluster's id is null while it is not known."""
    assert '{"version":"1.2","commit":"abc","kafka_cluster_id":null}' == client.get("/").text


def test_names_are_listed(client: httpx.Client):
    """Without ``expand`` the answer is an array of names."""
    assert '["c"]' == client.get("/connectors").text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("expand=info", f'{{"c":{{"info":{INFO_C}}}}}'),
        ("expand=status", f'{{"c":{{"status":{STATUS_C}}}}}'),
        ("expand=status&expand=info", f'{{"c":{{"info":{INFO_C},"status":{STATUS_C}}}}}'),
        ("expand=other", '{"c":{}}'),
        ("expand=other&expand=info", f'{{"c":{{"info":{INFO_C}}}}}'),
    ],
)
def test_expansion(client: httpx.Client, query: str, expected: str):
    """Each known word of ``expand`` adds its part; unknown ones add nothing."""
    assert expected == client.get(f"/connectors?{query}").text


def test_a_connector_that_goes_while_expanding_is_left_out(
    client: httpx.Client, herder: FakeHerder, monkeypatch: pytest.MonkeyPatch
):
    """A look-up that answers 404 is no error of the whole list."""
    monkeypatch.setattr(herder, "connectors", lambda: ["c", "gone"])

    assert ["c"] == list(client.get("/connectors?expand=status").json())


def test_creation(client: httpx.Client, herder: FakeHerder):
    """201, the connector, its absolute address, and the name filled in."""
    answer = created(client)

    assert (201, f"{client.base_url}/connectors/n") == (
        answer.status_code,
        answer.headers["location"],
    )
    assert (
        '{"name":"n","config":{"connector.class":"FileStreamSource","tasks.max":"1","name":"n"},'
        '"tasks":[{"connector":"n","task":0}],"type":"source"}' == answer.text
    )
    assert "application/json" == answer.headers["content-type"]
    assert {**CONFIG, "name": "n"} == herder.configs["n"]


def test_location_comes_from_the_host_header(client: httpx.Client):
    """Behind another name, the address is under that name."""
    answer = client.post(
        "/connectors", json={"name": "n", "config": CONFIG}, headers={"Host": "connect.example:99"}
    )

    assert "http://connect.example:99/connectors/n" == answer.headers["location"]


@pytest.mark.parametrize("host", ['evil"<x>', "a/b", "a b", "u@x", "x:999999", "", "[", "x\\y"])
def test_a_host_that_is_none_is_not_repeated(client: httpx.Client, host: str):
    """The address is the listener's own then."""
    answer = client.post(
        "/connectors", json={"name": "n", "config": CONFIG}, headers={"Host": host}
    )

    assert f"{client.base_url}/connectors/n" == answer.headers["location"]


def test_an_existing_name_is_a_conflict(client: httpx.Client):
    """409 in Kafka Connect's words."""
    answer = created(client, name="c")

    assert (409, '{"error_code":409,"message":"Connector c already exists"}') == (
        answer.status_code,
        answer.text,
    )


def test_name_of_a_creation_is_trimmed_as_in_java(client: httpx.Client, herder: FakeHerder):
    """Spaces and control characters go, a no-break space stays."""
    created(client, name=" \x01n\xa0\t")

    assert "n\xa0" in herder.configs


def test_another_name_in_the_config_is_refused(client: httpx.Client):
    """Of creation and PUT config alike."""
    other = {**CONFIG, "name": "other"}
    shown = "Connector name configuration (other) doesn't match connector name in the URL (n)"

    for answer in (created(client, config=other), client.put("/connectors/n/config", json=other)):
        assert (400, {"error_code": 400, "message": shown}) == (answer.status_code, answer.json())


@pytest.mark.parametrize("word", ["STOPPED", "stopped", "Stopped"])
def test_initial_state(client: httpx.Client, herder: FakeHerder, word: str):
    """KIP-980's state is passed to the herder, in upper or lower case."""
    created(client, initial_state=word)

    assert [TargetState.STOPPED] == [
        each.initial_state for _, each in herder.calls if isinstance(each, CreateRequest)
    ]


def test_offsets_of_a_creation(client: httpx.Client, herder: FakeHerder):
    """KIP-995: 200, an address, and the response as the last field; numbers stay numbers."""
    answer = created(
        client,
        initial_offsets=[
            {"partition": {"f": "a"}, "offset": {"p": 3, "q": 1e10}},
            {"partition": {}, "offset": None},
        ],
    )

    assert 200 == answer.status_code
    assert answer.text.endswith('"type":"source","initial_offsets_response":"Set."}')
    assert answer.headers["location"].endswith("/connectors/n")
    _, request = herder.calls[0]
    assert (
        OffsetChange(partition={"f": "a"}, offset={"p": 3, "q": 1e10}),
        OffsetChange(partition={}, offset=None),
    ) == tuple(request.initial_offsets)


def test_null_offsets_are_none(client: httpx.Client):
    """With ``initial_offsets`` null the creation is an ordinary one."""
    answer = created(client, initial_offsets=None)

    assert 201 == answer.status_code
    assert "initial_offsets_response" not in answer.json()


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        {},
        "x",
        7,
        [None],
        [{}],
        [[]],
        [{"partition": 1, "offset": {}}],
        [{"partition": {}, "offset": 1}],
        [{"partition": {}}],
        [{"offset": {}}],
        [{"partition": {}, "offset": {}, "more": 1}],
    ],
)
def test_malformed_offsets_of_a_creation(client: httpx.Client, herder: FakeHerder, offsets: object):
    """A wrong form is 400, and the herder is not called."""
    assert 400 == created(client, initial_offsets=offsets).status_code
    assert [] == herder.calls


def test_reading_one(client: httpx.Client):
    """The connector, its config, its tasks and its topics, to the byte."""
    answers = [
        client.get(f"/connectors/c{path}").text for path in ("", "/config", "/tasks", "/topics")
    ]

    assert [
        INFO_C,
        '{"connector.class":"FileStreamSource","name":"c"}',
        '[{"id":{"connector":"c","task":0},"config":{"file":"a.txt"}}]',
        '{"c":{"topics":[]}}',
    ] == answers


def test_put_config(client: httpx.Client):
    """201 with an address for a new connector, 200 without for an old one."""
    answers = [client.put("/connectors/new/config", json=CONFIG) for _ in range(2)]

    assert [201, 200] == [each.status_code for each in answers]
    assert [f"{client.base_url}/connectors/new", None] == [
        each.headers.get("location") for each in answers
    ]
    assert "new" == answers[0].json()["config"]["name"]


def test_name_in_a_path_is_not_trimmed(client: httpx.Client, herder: FakeHerder):
    """Unlike the name in a creation."""
    client.put("/connectors/%20n/config", json=CONFIG)

    assert " n" in herder.configs


def test_patch_config(client: httpx.Client, herder: FakeHerder):
    """Null takes a key out, numbers and booleans become the text that was sent."""
    body = b'{"a":null,"b":1.50,"c":true,"d":1E5,"e":"x"}'
    answer = client.patch(
        "/connectors/c/config", content=body, headers={"Content-Type": "application/json"}
    )

    assert 200 == answer.status_code
    changes = {"a": None, "b": "1.50", "c": "true", "d": "1E5", "e": "x"}
    assert [("patch_config", changes)] == herder.calls


def test_deletion(client: httpx.Client):
    """204 and no body, then 404."""
    answers = [client.delete("/connectors/c") for _ in range(2)]

    assert [204, 404] == [each.status_code for each in answers]
    assert (b"", {"error_code": 404, "message": "Connector c not found"}) == (
        answers[0].content,
        answers[1].json(),
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_path_takes_any_name(client: httpx.Client, herder: FakeHerder, name: str):
    """A connector is created, found in every path by its ``Location``, and deleted."""
    answer = created(client, name=name)
    place = answer.headers["location"].removeprefix(str(client.base_url))
    assert 201 == answer.status_code
    herder.written = {name: ["t"]}

    for at in (place, f"/connectors/{in_path(name)}"):
        for rest in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/offsets"):
            assert 200 == client.get(at + rest).status_code
        assert {name: {"topics": ["t"]}} == client.get(f"{at}/topics").json()
        assert name == client.get(at).json()["name"]
        assert 202 == client.put(f"{at}/pause").status_code
        assert 204 == client.put(f"{at}/stop").status_code
        assert 202 == client.put(f"{at}/resume").status_code
        assert 204 == client.post(f"{at}/restart").status_code
        assert 204 == client.post(f"{at}/tasks/0/restart").status_code
        assert 200 == client.put(f"{at}/config", json=CONFIG).status_code
        assert 200 == client.patch(f"{at}/config", json={}).status_code
        assert 200 == client.delete(f"{at}/offsets").status_code
        assert 202 == client.put(f"{at}/topics/reset").status_code
    assert 204 == client.delete(place).status_code
    assert name not in herder.configs
