"""What is answered over HTTP as a real worker answers it: the expectations were recorded from Kafka Connect 4.3.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import headrace
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from herder.stage import Stage
from plugins.judged import validator
from waiting import until

CONFIG = {"connector.class": "FileStreamSource", "topic": "t", "file": "/nowhere"}
INVALID = "Connector configuration is invalid and contains the following {} error(s):"
SEE = "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"


@pytest.fixture
def stage() -> Stage:
    """Stores in memory, and what judges configurations in a real worker."""
    return Stage(judge=validator())


@pytest.fixture
def client(stage: Stage) -> Iterator[httpx.Client]:
    """A client of a worker with the connector ``c``."""
    with stage.herder() as herder:
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        with httpx.Client(base_url=server.url.rstrip("/"), timeout=20) as client:
            client.post("/connectors", json={"name": "c", "config": CONFIG})
            yield client
        server.close()


def status_and_message(answer: httpx.Response) -> tuple[int, str]:
    """The status and the sentence of an error."""
    return answer.status_code, answer.json()["message"]


def test_a_patch_cannot_take_the_name_out(client: httpx.Client) -> None:
    """The name of the URL does not take its place."""
    answer = client.patch("/connectors/c/config", json={"name": None})

    missing = 'Missing required configuration "name" which has no default value.'
    assert (400, "\n".join((INVALID.format(1), missing, SEE))) == status_and_message(answer)
    assert client.get("/connectors/c/config").json() == {**CONFIG, "name": "c"}


@pytest.mark.parametrize(
    "path", ["restart", "restart?includeTasks=true&onlyFailed=true", "tasks/0/restart"]
)
def test_a_restart_of_what_is_not_there_is_reported_with_a_colon(
    client: httpx.Client, path: str
) -> None:
    """As a distributed worker; other requests have none."""
    assert (404, "Unknown connector: none") == status_and_message(
        client.post(f"/connectors/none/{path}")
    )
    assert (404, "Unknown connector none") == status_and_message(
        client.put("/connectors/none/pause")
    )


@pytest.mark.parametrize("query", ["", "=", "=TRUE", "=no", "=%20true"])
def test_an_empty_parameter_is_as_good_as_none(client: httpx.Client, query: str) -> None:
    """Anything else but the word is false."""
    plugins = client.get(f"/connector-plugins?connectorsOnly{query}").json()

    assert (query in {"=no", "=%20true"}) == ("converter" in {each["type"] for each in plugins})


def test_a_logger_s_level_is_trimmed(client: httpx.Client) -> None:
    """Of what Java calls white space; the refusal repeats it as it was sent."""
    path = "/admin/loggers/headrace.none.such"

    assert ["headrace.none.such"] == client.put(path, json={"level": " debug\n"}).json()
    assert "DEBUG" == client.get(path).json()["level"]
    for word in (" ", "nope ", "\u00a0INFO"):
        answer = client.put(path, json={"level": word})
        assert (404, f"invalid log level '{word}'.") == status_and_message(answer)


def test_plugins_are_named_as_java_names_them(client: httpx.Client) -> None:
    """Where it has the class; others by where they lie. Each name is one that the next request takes."""
    plugins = client.get("/connector-plugins?connectorsOnly=false").json()
    named: dict[str, list[str]] = {}
    for each in plugins:
        named.setdefault(each["type"], []).append(each["class"])

    assert [
        "headrace.connectors.files.connector:FilesConnector",
        "headrace.connectors.sqlite_table:SqliteConnector",
        "io.aiven.kafka.connect.s3.source.S3SourceConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    ] == [
        each for each in named["source"] if each.startswith(("headrace.connectors", "io.", "org."))
    ]
    assert "org.apache.kafka.connect.json.JsonConverter" in named["converter"]
    assert "org.apache.kafka.connect.storage.SimpleHeaderConverter" in named["header_converter"]
    for kind in ("converter", "header_converter"):
        assert sorted(named[kind]) == named[kind]
        assert not any(each.startswith("headrace.converters") for each in named[kind])
    for each in plugins:
        assert 200 == client.get(f"/connector-plugins/{each['class']}/config").status_code


def states(status: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The state and the version of the connector, then of its tasks."""
    return [(each["state"], each["version"]) for each in (status["connector"], *status["tasks"])]


def test_every_state_has_the_version(client: httpx.Client) -> None:
    """Not only those that a run writes."""
    path, version = "/connectors/c/status", headrace.__version__

    until(lambda: states(client.get(path).json()) == [("RUNNING", version)] * 2)
    restarting = client.post("/connectors/c/restart?includeTasks=true").json()
    assert [("RESTARTING", version)] * 2 == states(restarting)
    client.put("/connectors/c/pause")
    until(lambda: states(client.get(path).json()) == [("PAUSED", version)] * 2)
    client.put("/connectors/c/stop")
    until(lambda: states(client.get(path).json()) == [("STOPPED", version)])


def test_what_is_restarted_because_it_failed_says_why(client: httpx.Client, stage: Stage) -> None:
    """The answer has the trace of the failure, and the version."""
    until(lambda: len(client.get("/connectors/c/tasks").json()) == 1)
    stage.the_run().end(ValueError("it broke"))
    until(lambda: client.get("/connectors/c/status").json()["connector"]["state"] == "FAILED")

    answer = client.post("/connectors/c/restart?onlyFailed=true")
    shown = answer.json()["connector"]
    assert (202, "RESTARTING", headrace.__version__, "it broke") == (
        answer.status_code,
        *(shown[each] for each in ("state", "version", "trace")),
    )


TRANSFORMS = "org.apache.kafka.connect.transforms"
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
FILE_STREAM = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def validated(client: httpx.Client, **changes: str | None) -> dict[str, Any]:
    """The answer to a validation of the usual connector; of the names of *changes* two underscores stand for a dot."""
    given = {key.replace("__", "."): value for key, value in changes.items()}
    path = "/connector-plugins/FileStreamSource/config/validate"
    return client.put(path, json={"name": "v", **CONFIG, **given}).json()


def errors(infos: dict[str, Any]) -> dict[str, list[str]]:
    """What is wrong, by key."""
    values = (each["value"] for each in infos["configs"])
    return {each["name"]: each["errors"] for each in values if each["errors"]}


def test_a_client_setting_that_no_one_knows_is_accepted(client: httpx.Client) -> None:
    """It is shown as it was given, without a definition."""
    infos = validated(client, producer__override__nope="1")

    shown = {each["value"]["name"]: each for each in infos["configs"]}["producer.override.nope"]
    assert (0, None, "1") == (infos["error_count"], shown["definition"], shown["value"]["value"])


def test_the_version_of_each_plugin_is_its_default_and_recommended(client: httpx.Client) -> None:
    """Of the connector, of converters, of transformations and of predicates; of what is none there is none."""
    stages = {"transforms__a__type": "Filter", "predicates__p__type": "RecordIsTombstone"}
    lost = {"value__converter": "nope"}
    infos = validated(client, transforms="a", predicates="p", **stages, **lost)

    version = headrace.__version__
    found = {
        each["value"]["name"].removesuffix(".plugin.version"): (
            each["definition"]["default_value"],
            each["value"]["value"],
            each["value"]["recommended_values"],
        )
        for each in infos["configs"]
        if each["value"]["name"].endswith(".plugin.version")
    }
    there = ("connector", "key.converter", "header.converter", "transforms.a", "predicates.p")
    assert found == {
        **dict.fromkeys(there, (version, version, [version])),
        "value.converter": (None, None, []),
    }


def test_without_a_worker_converters_have_no_default(client: httpx.Client) -> None:
    """A plugin's settings are those of its class; only its own version is known."""
    settings = client.get("/connector-plugins/FileStreamSource/config").json()
    defaults = {each["name"]: each["default_value"] for each in settings}

    assert headrace.__version__ == defaults["connector.plugin.version"]
    assert None is defaults["key.converter"]
    assert None is defaults["key.converter.plugin.version"]


NULL = "Null value can not be supplied as the configuration value."


@pytest.mark.parametrize("key", ["file", "batch.size"])
def test_a_null_stands_for_an_optional_setting_of_the_connector(
    client: httpx.Client, key: str
) -> None:
    """It is accepted and shown as null."""
    infos = validated(client, **{key: None})
    values = {each["value"]["name"]: each["value"]["value"] for each in infos["configs"]}

    assert (0, None) == (infos["error_count"], values[key])


@pytest.mark.parametrize("key", ["topic", "name", "errors.log.enable", "no one.knows"])
def test_another_null_is_refused_by_the_name_of_its_key(client: httpx.Client, key: str) -> None:
    """Kafka Connect's sentence is the same for all keys, and its answer to a creation does not name it."""
    assert {key: [f"Invalid value null for configuration {key}: {NULL}"]} == errors(
        validated(client, **{key: None})
    )


@pytest.mark.parametrize(
    ("changes", "key", "status_and_message"),
    [
        (
            {"transforms": "a", "transforms.a.type": CONVERTER},
            "transforms.a.type",
            f"Class class {CONVERTER} does not implement the Transformation interface",
        ),
        (
            {"transforms": "a", "transforms.a.type": "HasHeaderKey"},
            "transforms.a.type",
            f"Class class {TRANSFORMS}.predicates.HasHeaderKey does not implement the Transformation interface",
        ),
        (
            {"predicates": "p", "predicates.p.type": CONVERTER},
            "predicates.p.type",
            f"Class class {CONVERTER} does not implement the Predicate interface",
        ),
        (
            {"key.converter": "Filter"},
            "key.converter",
            f"Class class {TRANSFORMS}.Filter does not implement the Converter interface",
        ),
        (
            {"key.converter": "SimpleHeaderConverter"},
            "key.converter",
            (
                "Class class org.apache.kafka.connect.storage.SimpleHeaderConverter does not implement the Converter "
                "interface"
            ),
        ),
        (
            {"header.converter": "FileStreamSource"},
            "header.converter",
            f"Class class {FILE_STREAM} does not implement the HeaderConverter interface",
        ),
        (
            {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}.InsertField"},
            "transforms.a.type",
            (
                "This class is abstract and cannot be created. Did you mean "
                f"{TRANSFORMS}.InsertField$Key, {TRANSFORMS}.InsertField$Value?"
            ),
        ),
        (
            {"transforms": "a", "transforms.a.type": "nope"},
            "transforms.a.type",
            "Invalid value nope for configuration transforms.a.type: Class nope could not be found.",
        ),
    ],
)
def test_a_class_of_the_wrong_kind_is_reported_without_a_prefix(
    client: httpx.Client, changes: dict[str, str], key: str, status_and_message: str
) -> None:
    """By the class's full name, whatever it was called; one that is not there has the usual prefix."""
    assert {key: [status_and_message]} == errors(validated(client, **changes))


@pytest.mark.parametrize("key", ["batch.size", "errors.retry.timeout", "errors.retry.delay.max.ms"])
def test_a_number_that_cannot_be_read_is_one_error(client: httpx.Client, key: str) -> None:
    """Two only for ``tasks.max``, whose limits Kafka Connect does not check at all."""
    [sentence] = errors(validated(client, **{key: "x"}))[key]
    first, second = errors(validated(client, tasks__max="NaN"))["tasks.max"]

    assert sentence.startswith(f"Invalid value x for configuration {key}: Not a number of type ")
    assert "Invalid value NaN for configuration tasks.max: Not a number of type INT" == first
    assert "Invalid value null for configuration tasks.max: Value must be non-null" == second


def test_converters_list_their_role(client: httpx.Client) -> None:
    """Required of a plugin alone; a worker reports it."""
    listed = client.get(f"/connector-plugins/{CONVERTER}/config").json()
    assert [
        ("converter.type", True, None),
        ("schemas.enable", False, "true"),
        ("schemas.cache.size", False, "1000"),
        ("schema.content", False, None),
        ("decimal.format", False, "BASE64"),
        ("replace.null.with.default", False, "true"),
    ] == [(each["name"], each["required"], each["default_value"]) for each in listed]

    [_, encoding] = client.get("/connector-plugins/StringConverter/config").json()
    assert ("converter.encoding", "MEDIUM", "Encoding") == tuple(
        encoding[each] for each in ("name", "width", "display_name")
    )
    for name in ("ByteArrayConverter", "ShortConverter", "BooleanConverter"):
        [only] = client.get(f"/connector-plugins/{name}/config").json()
        assert "converter.type" == only["name"]
    assert [] == client.get("/connector-plugins/SimpleHeaderConverter/config").json()


def test_a_validation_lists_converters_in_the_order_of_java_s_hash_table(
    client: httpx.Client,
) -> None:
    """Their keys, and with them their groups, each once; the role is the one that the worker gives."""
    infos = validated(client, key__converter=CONVERTER, value__converter=CONVERTER)
    keys = [each["value"]["name"] for each in infos["configs"]]
    values = {each["value"]["name"]: each["value"]["value"] for each in infos["configs"]}

    assert ["offsets.topic", "Serialization", "Schemas"] == infos["groups"][-3:]
    names = ["decimal.format", "converter.type", "schemas.cache.size", "replace.null.with.default"]
    names += ["schemas.enable", "schema.content"]
    assert [f"value.converter.{each}" for each in names] == keys[-6:]
    assert ("key", "value") == tuple(
        values[f"{role}.converter.converter.type"] for role in ("key", "value")
    )


def test_words_for_exactly_once_are_reported_in_upper_case(client: httpx.Client) -> None:
    """They may be written in any."""
    wrong = {"exactly.once.support": "maybe", "transaction.boundary": "never"}
    status_and_message = (
        "Invalid value {} for configuration {}: String must be one of (case insensitive): {}"
    )

    assert {
        key: [status_and_message.format(wrong[key], key, words)]
        for key, words in (
            ("exactly.once.support", "REQUIRED, REQUESTED"),
            ("transaction.boundary", "INTERVAL, POLL, CONNECTOR"),
        )
    } == errors(validated(client, **wrong))


def test_a_version_that_is_not_there_is_reported_at_the_class_too(client: httpx.Client) -> None:
    """By the full name of the class, whose alias was given, and without a prefix."""
    sentence = (
        f"Plugin {FILE_STREAM} not found that matches the version range [9.9,9.9], "
        f"available versions: [{headrace.__version__}]"
    )

    assert {"connector.class": [sentence], "connector.plugin.version": [sentence]} == errors(
        validated(client, connector__plugin__version="9.9")
    )
    answer_of_version = client.get("/connector-plugins/FileStreamSource/config?version=9.9")
    assert (400, sentence) == status_and_message(answer_of_version)


def test_a_version_that_cannot_be_read_ends_the_validation(client: httpx.Client) -> None:
    """500 from a validation, 400 from a creation; of a converter or transformation it is an error of the key."""
    wrong = {"connector.plugin.version": "[[1"}
    path = "/connector-plugins/FileStreamSource/config"
    made = client.post("/connectors", json={"name": "v", "config": {**CONFIG, **wrong}})
    wrapped = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "

    assert (400, "Unbounded range: [[1") == status_and_message(made)
    answer = client.put(f"{path}/validate", json={"name": "v", **CONFIG, **wrong})
    assert (500, f"{wrapped}Unbounded range: [[1") == status_and_message(answer)
    answer_of_version = client.get(f"{path}?version=%5B%5B1")
    assert (400, "Invalid version specification: [[1") == status_and_message(answer_of_version)
    stage = {"transforms.a.type": "Filter", "transforms.a.plugin.version": "[["}
    found = errors(validated(client, transforms="a", **stage))
    assert {key: ["Unbounded range: [["] for key in stage} == found
    key = "key.converter.plugin.version"
    found = errors(validated(client, **{"key.converter": CONVERTER, key: "[["}))
    assert {key: ["Unbounded range: [["]} == found


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (
            "InsertField$Value",
            (
                "negate offset.field partition.field predicate replace.null.with.default static.field static.value "
                "timestamp.field topic.field"
            ),
        ),
        ("ReplaceField$Key", "exclude include negate predicate renames replace.null.with.default"),
        (
            "TimestampConverter$Key",
            "target.type field format negate predicate replace.null.with.default unix.precision",
        ),
        (
            "ExtractField$Key",
            "field field.syntax.version negate predicate replace.null.with.default",
        ),
        ("Flatten$Key", "delimiter negate predicate"),
        ("DropHeaders", "headers negate predicate"),
    ],
)
def test_a_transformation_s_settings_are_in_java_s_order(
    client: httpx.Client, name: str, keys: str
) -> None:
    """What must be given first, then by importance and name; with their places in the group."""
    infos = validated(client, transforms="a", transforms__a__type=name)
    group = [
        (each["definition"]["order_in_group"], each["value"]["name"].removeprefix("transforms.a."))
        for each in infos["configs"]
        if each["definition"]["group"] == "Transforms: a"
    ]

    assert list(enumerate(["type", "plugin.version", *keys.split()])) == group
