"""Files of connectors and workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from headrace.config.config_files import (
    ConnectorFile,
    read_connector_file,
    read_worker_file,
    repeated_keys,
)
from headrace.connect.errors import ConfigError
from headrace.herder.answers import TargetState
from headrace.herder.requests import MOST_NAME_BYTES, OffsetChange

_CONFIG = {"name": "c", "connector.class": "files", "tasks.max": "2"}


def _file(folder: Path, content: str | bytes) -> Path:
    path = folder / "connector"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(_CONFIG),
        "\ufeff \n" + json.dumps(_CONFIG),
        json.dumps({"name": "c", "config": _CONFIG}),
        json.dumps({"name": "c", "config": {**_CONFIG, "name": "c"}, "tasks": [], "type": "x"}),
        json.dumps({"config": _CONFIG, "initial_offsets": None, "initial_state": None}),
        json.dumps({"name": "c ", "config": _CONFIG | {"name": "c "}}),
        "# a comment\nname=c \nconnector.class: files\ntasks.max 2\n",
    ],
)
def test_content_decides_what_a_file_is(tmp_path: Path, content: str):
    """A map, a create request and properties describe the same connector."""
    assert ConnectorFile(name="c", config=_CONFIG) == read_connector_file(_file(tmp_path, content))


@pytest.mark.parametrize("depth", [99, 500, 1_000, 100_000])
@pytest.mark.parametrize("read", [read_connector_file, read_worker_file])
def test_what_is_nested_too_deeply_is_refused(
    tmp_path: Path, read: Callable[[Path], object], depth: int
):
    """In the same words however deep it is, and with the bound of REST's bodies."""
    content = f'{{"config": {{"name": "c"}}, "initial_offsets": {"[" * depth}{"]" * depth}}}'
    with pytest.raises(ConfigError) as caught:
        read(_file(tmp_path, content))

    is_refused = "nested deeper than 100 levels" in str(caught.value)
    assert (depth >= 100) == is_refused


def test_an_array_that_is_nested_too_deeply_is_not_an_object_either(tmp_path: Path):
    """It is no properties file."""
    with pytest.raises(ConfigError, match="It is JSON, but not an object"):
        read_connector_file(_file(tmp_path, "[" * 100_000 + "]" * 100_000))


@pytest.mark.parametrize("character", ["n", "%", "ü", "😀"])
@pytest.mark.parametrize("more", [{}, {"config": {"topic": "t"}}], ids=["map", "request"])
def test_a_name_in_a_file_is_as_long_as_a_url_takes(
    tmp_path: Path, character: str, more: dict[str, object]
):
    """As over REST: longer ones could not be asked for or deleted."""
    longest = character * (MOST_NAME_BYTES // len(quote(character, safe="")))
    found = read_connector_file(_file(tmp_path, json.dumps({"name": longest, **more})))

    assert longest == found.name
    for name in (longest + character, character * 300_000):
        with pytest.raises(ConfigError, match=r"name: The name has .* at most 4096") as caught:
            read_connector_file(_file(tmp_path, json.dumps({"name": name, **more})))
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "content",
    ["a=1\nb = 2\na : 3\n\\u0061=4\nc\n", '{"a": "1", "b": 2, "a": 3, "c": {"a": 1, "c": 2}}'],
)
def test_keys_that_a_file_has_twice_are_found(tmp_path: Path, content: str):
    """Each once; those within a value are none of the file's."""
    path = tmp_path / "file"
    path.write_text(content)
    assert ["a"] == repeated_keys(path)


def test_the_name_of_a_request_is_filled_in(tmp_path: Path):
    """A request's configuration needs no name of its own."""
    content = json.dumps({"name": "c", "config": {"connector.class": "files", "tasks.max": 2}})
    assert _CONFIG == read_connector_file(_file(tmp_path, content)).config


def test_every_misspelt_field_of_a_request_is_refused(tmp_path: Path):
    """It would be overlooked, and the connector begin from the start; the sentence has the right names."""
    content = json.dumps({"config": _CONFIG, "initial_offset": [], "initial_State": "STOPPED"})
    with pytest.raises(ConfigError) as caught:
        read_connector_file(_file(tmp_path, content))
    reported = "Unknown field; the fields of a connector's file are: name, config, initial_state, initial_offsets."
    assert (("initial_offset", reported), ("initial_State", reported)) == caught.value.problems


@pytest.mark.parametrize(("given", "state"), [("PAUSED", "PAUSED"), ("stopped", "STOPPED")])
def test_a_request_may_say_the_initial_state(tmp_path: Path, given: str, state: str):
    """In any case, as in Kafka Connect."""
    content = json.dumps({"config": _CONFIG, "initial_state": given})
    found = read_connector_file(_file(tmp_path, content))
    assert TargetState(state) == found.initial_state


def test_scalars_stay_the_text_that_they_are(tmp_path: Path):
    """Numbers keep their digits, booleans are lower case."""
    content = '{"name": "c", "a": 1.50, "b": 12345678901234567890, "c": true, "d": -0}'
    found = read_worker_file(_file(tmp_path, content))
    expected = {"name": "c", "a": "1.50", "b": "12345678901234567890", "c": "true", "d": "-0"}
    assert expected == found


@pytest.mark.parametrize(
    ("content", "key", "sentence"),
    [
        ('{"tasks.max": 1}', "name", "is missing the mandatory 'name' configuration"),
        ('{"config": {"tasks.max": 1}}', "name", "is missing the mandatory 'name' configuration"),
        ("tasks.max=1", "name", "is missing the mandatory 'name' configuration"),
        ("", "name", "is missing the mandatory 'name' configuration"),
        (
            '{"name": "a", "config": {"name": "b"}}',
            "name",
            "Connector name configuration in 'config' doesn't match the one specified in 'name'",
        ),
        (
            '{"name": "a", "config": {}, "initial_offsets": []}',
            "initial_offsets",
            "It must be an array of objects",
        ),
        (
            '{"name": "a", "config": {}, "initial_state": "GONE"}',
            "initial_state",
            "RUNNING, PAUSED",
        ),
        ('{"name": "a", "b": null}', "b", "Null value can not be supplied"),
        ('{"name": "a", "b": [1]}', "b", "must be a string, a number or a boolean"),
        ('{"name": "a",\n "b": }', "file", "at line 2, column 7"),
        (b'{"name": "\xff"}', "file", "not UTF-8 at byte 10"),
        ("name=\\uXYZ", "file", "Malformed"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(
    tmp_path: Path, content: str | bytes, key: str, sentence: str
):
    """Every refusal names the file and the reason."""
    path = _file(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        read_connector_file(path)
    ((where, reported),) = caught.value.problems
    assert key == where
    assert sentence in reported
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    """The reason is the system's."""
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigError, match="It cannot be read") as caught:
            read_connector_file(path)
        assert str(path) in str(caught.value)


def test_a_broken_file_keeps_its_secrets(tmp_path: Path):
    """Neither the message nor its cause holds the content."""
    path = _file(tmp_path, '{"name": "a", "password": "hunter2" oops')
    with pytest.raises(ConfigError) as caught:
        read_worker_file(path)
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__!r}"


def test_a_connector_in_place_of_the_worker_is_reported_as_such(tmp_path: Path):
    """Whoever gives the files in the wrong order, or forgets the worker's, need not guess."""
    with pytest.raises(
        ConfigError, match=r"This is a connector's file. The worker's file comes first"
    ):
        read_worker_file(_file(tmp_path, '{"name": "c", "config": {"topic": "t"}}'))


def test_worker_files_are_json_or_properties(tmp_path: Path):
    """Both forms give the same configuration."""
    expected = {"group.id": "w", "offset.flush.interval.ms": "10"}
    properties = _file(tmp_path, "group.id=w\noffset.flush.interval.ms = 10")
    assert expected == read_worker_file(properties)
    text = _file(tmp_path, '{"group.id": "w", "offset.flush.interval.ms": 10}')
    assert expected == read_worker_file(text)


def test_a_mark_at_the_beginning_hides_no_key(tmp_path: Path):
    """Editors write a byte order mark before the first key."""
    path = _file(tmp_path, b"\xef\xbb\xbfkey.converter=string\nvalue.converter=json\n")
    assert {"key.converter": "string", "value.converter": "json"} == read_worker_file(path)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"\x7fELF\x02\x00\x01", "not a text file"),
        ("key.converter=string\n".encode("utf-16"), "not a text file in UTF-8"),
        (b'["a"]', "It is JSON, but not an object"),
        (b'"a"', "It is JSON, but not an object"),
    ],
)
def test_what_is_no_configuration_is_reported_as_such(
    tmp_path: Path, content: bytes, reported: str
):
    """And not as a properties file in which everything is missing."""
    path = _file(tmp_path, content)
    for read in (read_worker_file, read_connector_file):
        with pytest.raises(ConfigError, match=reported) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path} has 1 problem")


def test_a_key_may_begin_as_json_does(tmp_path: Path):
    """What Java reads as properties stays properties."""
    assert {"[a": "1"} == read_worker_file(_file(tmp_path, "[a=1\n"))


def test_a_request_may_hold_offsets_to_begin_with(tmp_path: Path):
    """KIP-995's field: numbers stay numbers there, though configurations are text."""
    path = tmp_path / "c.json"
    offsets = [
        {"partition": {"filename": "a"}, "offset": {"position": 7}},
        {"partition": {}, "offset": None},
    ]
    path.write_text(json.dumps({"config": _CONFIG | {"n": 7}, "initial_offsets": offsets}))
    found = read_connector_file(path)

    assert "7" == found.config["n"]
    assert [
        OffsetChange(partition={"filename": "a"}, offset={"position": 7}),
        OffsetChange(partition={}, offset=None),
    ] == found.initial_offsets


@pytest.mark.parametrize("element", [{"partition": {}}, {"offset": {}}, {}])
def test_offsets_to_begin_with_are_whole(tmp_path: Path, element: object):
    """One whose offset was forgotten would begin from the start, which no one asked for."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"config": _CONFIG, "initial_offsets": [element]}))

    with pytest.raises(ConfigError, match="an offset may be null, but may not be missing"):
        read_connector_file(path)
