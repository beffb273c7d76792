"""Names of connector classes."""

from __future__ import annotations

import importlib
import re

import pytest

from headrace.config.aliases import CONNECTORS, connector_path, unknown_connector
from headrace.connect.connector import SourceConnector


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


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("org.apache.kafka.connect.file.FileStreamSinkConnector", "is a sink"),
        (
            "nope",
            f"matches nope, available connectors are: {', '.join(CONNECTORS)}, x:Y$",
        ),
        ("os.path:Class", r"os\.path is not one of .* plugin\.modules of .* or .* plugin\.path"),
    ],
)
def test_other_names_are_of_none(name: str, reported: str):
    """The sentence says why, or what there is."""
    assert connector_path(name) is None
    assert re.search(reported, str(unknown_connector(name, ["x:Y"])))
