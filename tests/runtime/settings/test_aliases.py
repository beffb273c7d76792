"""Names of connector classes."""

from __future__ import annotations

import importlib

import pytest

from headrace.connect.connector import SourceConnector
from headrace.runtime.settings.aliases import CONNECTORS, UnknownConnectorError, connector_path


@pytest.mark.parametrize(
    "name",
    [
        "file_stream",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
        CONNECTORS["file_stream"],
    ],
)
def test_a_connector_has_connects_names(name: str):
    """Short, Java's, and Connect's short forms of it."""
    assert CONNECTORS["file_stream"] == connector_path(name)


@pytest.mark.parametrize("path", CONNECTORS.values(), ids=CONNECTORS)
def test_every_connector_is_there(path: str):
    """What the table names can be imported."""
    module, _, name = path.partition(":")
    assert issubclass(getattr(importlib.import_module(module), name), SourceConnector)


def test_modules_must_be_allowed():
    """A configuration cannot import just any module."""
    with pytest.raises(UnknownConnectorError, match=r"plugin\.modules"):
        connector_path("os.path:Class")
    with pytest.raises(UnknownConnectorError, match=r"plugin\.modules"):
        connector_path("minefield:Class", plugin_modules=["mine"])
    path = "mine.connectors:Class"
    assert path == connector_path(path, plugin_modules=["mine"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("MirrorSourceConnector", "not supported yet"),
        ("org.apache.kafka.connect.file.FileStreamSinkConnector", "is a sink"),
        ("nope", "which name matches nope, available connectors are: files, file_stream"),
    ],
)
def test_other_names_are_refused(name: str, told: str):
    """The sentence says why, or what there is."""
    with pytest.raises(UnknownConnectorError, match=told):
        connector_path(name)
