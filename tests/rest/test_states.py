"""States, restarts, topics, offsets and plugins through a real socket."""

from __future__ import annotations

import httpx
import pytest

from headrace.connect.setting import Limits, Password, Setting, SettingType
from headrace.herder.answers import CheckedKey, ConfigInfos, ConfigValue, Plugin, PluginKind
from headrace.herder.requests import OffsetChange, RestartRequest
from rest.fake_herder import ALTERED, FakeHerder, offset

STATUS = (
    '{"name":"c","connector":{"state":"RUNNING","worker_id":"10.0.0.5:8083","version":"1.0"},'
    '"tasks":[{"id":0,"state":"FAILED","worker_id":"10.0.0.5:8083","version":null%s}],"type":"source"}'
)


@pytest.mark.parametrize(("trace", "shown"), [("x\ny", ',"trace":"x\\ny"'), (None, ""), ("", "")])
def test_status(client: httpx.Client, herder: FakeHerder, trace: str | None, shown: str):
    """To the byte: ``version`` is there even when null, ``trace`` only when there is one."""
    herder.trace = trace

    assert STATUS % shown == client.get("/connectors/c/status").text


def test_task_status(client: httpx.Client):
    """One element of the status, and 404 for what has none."""
    assert '{"id":0,"state":"FAILED","worker_id":"10.0.0.5:8083","version":null}' == (
        client.get("/connectors/c/tasks/0/status").text
    )
    for path, task in (("c/tasks/5", "c-5"), ("gone/tasks/0", "gone-0"), ("c/tasks/-1", "c--1")):
        answer = client.get(f"/connectors/{path}/status")
        assert (404, f"No status found for task {task}") == (
            answer.status_code,
            answer.json()["message"],
        )


@pytest.mark.parametrize(("word", "status"), [("pause", 202), ("resume", 202), ("stop", 204)])
def test_wanted_states(client: httpx.Client, herder: FakeHerder, word: str, status: int):
    """No body in the answer; the herder is called once."""
    answer = client.put(f"/connectors/c/{word}")

    assert (status, b"", [(word, "c")]) == (answer.status_code, answer.content, herder.calls)


@pytest.mark.parametrize(
    ("query", "tasks", "failed", "status"),
    [
        ("", False, False, 204),
        ("?includeTasks=false&onlyFailed=false", False, False, 204),
        ("?includeTasks=true", True, False, 202),
        ("?onlyFailed=TRUE", False, True, 202),
        ("?includeTasks=yes&onlyFailed=1", False, False, 204),
        ("?forward=false", False, False, 204),
    ],
)
def test_restart(
    client: httpx.Client, herder: FakeHerder, *, query: str, tasks: bool, failed: bool, status: int
):
    """204 without flags, with them 202 and the plan; only ``true`` is true."""
    answer = client.post(f"/connectors/c/restart{query}")

    request = RestartRequest(name="c", include_tasks=tasks, only_failed=failed)
    assert (status, [("restart", request)]) == (answer.status_code, herder.calls)
    assert (STATUS % "" if status == 202 else "") == answer.text


def test_restart_of_a_task(client: httpx.Client, herder: FakeHerder):
    """204; which numbers there are is the herder's to know."""
    statuses = [
        client.post(f"/connectors/c/tasks/{each}/restart").status_code for each in ("0", "-1", "x")
    ]

    assert [204, 204, 404] == statuses
    assert [("restart_task", ("c", 0)), ("restart_task", ("c", -1))] == herder.calls


def test_topics(client: httpx.Client, herder: FakeHerder):
    """Those of an unknown connector are none, and no error."""
    herder.written = {"c": ["a", "b"]}

    assert '{"c":{"topics":["a","b"]}}' == client.get("/connectors/c/topics").text
    assert '{"no":{"topics":[]}}' == client.get("/connectors/no/topics").text
    assert 202 == client.put("/connectors/c/topics/reset").status_code


def test_offsets(client: httpx.Client, herder: FakeHerder):
    """Numbers and characters as Java writes them."""
    assert '{"offsets":[]}' == client.get("/connectors/c/offsets").text
    herder.known_offsets = [offset({"f": "a"}, 3), offset({"f": "☃🎈"}, 1e10)]

    assert (
        '{"offsets":[{"partition":{"f":"a"},"offset":{"position":3}},'
        '{"partition":{"f":"☃\\uD83C\\uDF88"},"offset":{"position":1.0E10}}]}'
        == client.get("/connectors/c/offsets").text
    )


def test_altering_offsets(client: httpx.Client, herder: FakeHerder):
    """The herder gets what JSON held, nulls and oddities included, and its sentence is answered."""
    body = '{"offsets":[{"partition":{"f":1},"offset":null},{"partition":7,"offset":{"p":1.5}},{}]}'
    answer = client.patch(
        "/connectors/c/offsets", content=body, headers={"Content-Type": "application/json"}
    )

    assert (200, f'{{"message":"{ALTERED}"}}') == (answer.status_code, answer.text)
    changes = [
        OffsetChange(partition={"f": 1}, offset=None),
        OffsetChange(partition=7, offset={"p": 1.5}),
        OffsetChange(partition=None, offset=None),
    ]
    assert [("alter_offsets", changes)] == herder.calls
    assert ["127.0.0.1"] == herder.asked_by


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_numbers_that_are_out_of_range(client: httpx.Client, herder: FakeHerder, number: str):
    """They would become infinite, or nothing that can be stored."""
    body = f'{{"offsets":[{{"partition":{{}},"offset":{{"p":{number}}}}}]}}'
    answer = client.patch(
        "/connectors/c/offsets", content=body, headers={"Content-Type": "application/json"}
    )

    shown = "A number in the request body is out of range"
    assert (500, shown, []) == (answer.status_code, answer.json()["message"], herder.calls)


@pytest.mark.parametrize("body", [{}, {"offsets": None}, {"offsets": []}])
def test_altering_needs_offsets(client: httpx.Client, herder: FakeHerder, body: object):
    """400 before anything else is looked at."""
    answer = client.patch("/connectors/gone/offsets", json=body)

    shown = "Partitions / offsets need to be provided for an alter offsets request"
    assert (400, shown, []) == (answer.status_code, answer.json()["message"], herder.calls)


@pytest.mark.parametrize(
    "body",
    [
        {"offsets": {}},
        {"offsets": "x"},
        {"offsets": [None]},
        {"offsets": [{"partition": {}, "offset": {}, "more": 1}]},
        {"offsets": [{"partition": {}}], "more": 1},
    ],
)
def test_altering_with_other_forms(client: httpx.Client, herder: FakeHerder, body: object):
    """500, as Kafka Connect's parser answers."""
    answer = client.patch("/connectors/c/offsets", json=body)

    assert (500, []) == (answer.status_code, herder.calls)
    assert answer.json()["message"]


def test_resetting_offsets(client: httpx.Client, herder: FakeHerder):
    """The herder's sentence."""
    answer = client.delete("/connectors/c/offsets")

    assert (200, {"message": ALTERED}) == (answer.status_code, answer.json())
    assert [("reset_offsets", "c")] == herder.calls


def test_plugins(client: httpx.Client, herder: FakeHerder):
    """Connectors unless more is requested; no version where there is none; a problem is shown."""
    herder.known_plugins = [
        *herder.known_plugins,
        Plugin(class_name="a.Broken", kind=PluginKind.CONVERTER, problem="No module named x"),
    ]
    connectors = '{"class":"a.Files","type":"source","version":"1.0"}'

    assert f"[{connectors}]" == client.get("/connector-plugins").text
    assert (
        f'[{connectors},{{"class":"a.Json","type":"converter"}},'
        '{"class":"a.Broken","type":"converter","problem":"No module named x"}]'
        == client.get("/connector-plugins?connectorsOnly=false").text
    )


def test_settings_of_a_plugin(client: httpx.Client, herder: FakeHerder):
    """Fields in Kafka Connect's order, defaults as text, a required key without one."""
    herder.settings = [
        Setting(name="file", doc="Which.", importance="high", limits=Limits(non_empty=True)),
        Setting(name="s", doc="", type=SettingType.PASSWORD, default=Password("x"), group="G"),
        Setting(name="l", doc="", type=SettingType.LIST, default=("a", "b"), order=2, width="LONG"),
        Setting(name="b", doc="", type=SettingType.BOOLEAN, default=True, dependents=("l",)),
        Setting(name="n", doc="", type=SettingType.INT, default=None),
        Setting(name="d", doc="", type=SettingType.DOUBLE, default=1e10),
    ]
    answer = client.get("/connector-plugins/a.B/config?version=1.0")

    assert answer.text.startswith(
        '[{"name":"file","type":"STRING","required":true,"default_value":null,"importance":"HIGH",'
        '"documentation":"Which.","group":null,"order_in_group":-1,"width":"NONE",'
        '"display_name":"file","dependents":[]},{"name":"s"'
    )
    assert [None, "[hidden]", "a,b", "true", None, "1.0E10"] == [
        each["default_value"] for each in answer.json()
    ]
    assert [("plugin_settings", ("a.B", "1.0"))] == herder.calls


def test_validation(client: httpx.Client, herder: FakeHerder):
    """To the byte; the body is a map of text, nulls included."""
    setting = Setting(name="k", doc="", default=None)
    wrong = ConfigValue(name="k", value=None, errors=["Bad."], recommended=["r"], visible=False)
    herder.infos = ConfigInfos(
        name="a.Files",
        error_count=1,
        groups=["Common"],
        configs=[
            CheckedKey(definition=None, value=ConfigValue(name="u", value="v")),
            CheckedKey(definition=setting, value=wrong),
        ],
    )
    answer = client.put("/connector-plugins/a%2EFiles/config/validate", json={"k": None, "n": 1})

    assert (
        '{"name":"a.Files","error_count":1,"groups":["Common"],"configs":[{"definition":null,'
        '"value":{"name":"u","value":"v","recommended_values":[],"errors":[],"visible":true}},'
        '{"definition":{"name":"k","type":"STRING","required":false,"default_value":null,'
        '"importance":"MEDIUM","documentation":"","group":null,"order_in_group":-1,"width":"NONE",'
        '"display_name":"k","dependents":[]},"value":{"name":"k","value":null,'
        '"recommended_values":["r"],"errors":["Bad."],"visible":false}}]}' == answer.text
    )
    assert [("validate", ("a.Files", {"k": None, "n": "1"}))] == herder.calls
