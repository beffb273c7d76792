"""Plugins in the folders of ``plugin.path``: which of them may be named, and what is told of the rest."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.config.aliases import CONNECTORS, UnknownConnectorError, connector_name
from headrace.herder.answers import PluginKind
from headrace.herder.errors import BadRequestError
from headrace.plugins import Plugins, checked_worker
from plugins.judged import WORKER, validator

TAP = """
from headrace.connectors.file_stream import FileStreamSourceConnector

class {name}Connector(FileStreamSourceConnector):
    version = "3.2"
"""


OWN = frozenset(map(connector_name, CONNECTORS.values()))


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports, and from where, is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield
    for each in set(sys.modules) - before:
        del sys.modules[each]


def tap(place: Path, name: str = "Tap") -> None:
    """A module of a connector at *place*."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(TAP.format(name=name), "utf-8")


def installed(folder: Path, package: str, name: str) -> None:
    """What ``pip install --target`` leaves in *folder*: a package, and a distribution with an entry point."""
    tap(folder / package / "__init__.py", name)
    marks = folder / f"{package}-7.1.dist-info"
    marks.mkdir()
    (marks / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 7.1\n")
    (marks / "RECORD").write_text(f"{package}/__init__.py,,\n{marks.name}/METADATA,,\n")
    points = f"[headrace.connectors]\n{name.lower()} = {package}:{name}Connector\n"
    (marks / "entry_points.txt").write_text(points)


def plugins(*roots: Path | str, folder: Path | None = None, **settings: str) -> Plugins:
    """The plugins of a worker with these *roots* in its ``plugin.path``, in a file in *folder*."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    props = {**WORKER, "plugin.path": ",".join(map(str, roots)), **given}
    return Plugins(checked_worker(props, folder=folder))


def sources(found: Plugins) -> dict[str, str | None]:
    """The connectors that are not headrace's own, each with what is wrong with it."""
    return {
        each.class_name: each.problem
        for each in found.listed()
        if each.kind is PluginKind.SOURCE and each.class_name not in OWN
    }


@pytest.mark.parametrize(
    "place", ["pathtap.py", "tap-3.2/pathtap.py", "pathtap/__init__.py", "tap/pathtap/__init__.py"]
)
@pytest.mark.parametrize("name", ["pathtap:TapConnector", "TapConnector", "Tap"])
def test_a_module_in_a_folder_or_one_below_has_connect_s_names(
    place: str, name: str, tmp_path: Path
):
    """Whether it is a file or a package."""
    tap(tmp_path / place)
    found = plugins(tmp_path)

    assert "TapConnector" == found.connector_class(name).__name__
    assert {"pathtap:TapConnector": None} == sources(found)


@pytest.mark.parametrize("below", ["", "orders-7.1"])
def test_what_is_installed_there_is_found_by_its_entry_points(below: str, tmp_path: Path):
    """By the name that it has registered; its modules are not looked through."""
    installed(tmp_path / below, "pathorders", "Orders")
    tap(tmp_path / below / "pathorders" / "inner.py", "Inner")
    found = plugins(tmp_path)

    assert "OrdersConnector" == found.connector_class("orders").__name__
    assert {"pathorders:OrdersConnector": None} == sources(found)
    assert "pathorders.inner" == found.connector_class("pathorders.inner:InnerConnector").__module__


def test_a_module_that_cannot_be_imported_is_listed_with_its_reason(tmp_path: Path):
    """Those beside it are of use."""
    (tmp_path / "pathbroken.py").write_text("import no_such_module", "utf-8")
    tap(tmp_path / "pathtap.py")
    found = plugins(tmp_path)

    reported = "pathbroken could not be imported: No module named 'no_such_module'"
    assert {"pathbroken": reported, "pathtap:TapConnector": None} == sources(found)
    assert "TapConnector" == found.connector_class("Tap").__name__


def test_a_module_that_would_end_python_ends_nothing(tmp_path: Path):
    """Neither when it is looked into nor when it is named."""
    (tmp_path / "pathquitter.py").write_text("raise SystemExit(3)", "utf-8")
    found = plugins(tmp_path)

    assert {"pathquitter": "pathquitter could not be imported: 3"} == sources(found)
    with pytest.raises(UnknownConnectorError, match=r"^pathquitter:Tap could not be loaded"):
        found.connector_class("pathquitter:Tap")


def test_a_relative_folder_begins_at_the_worker_s_file(tmp_path: Path):
    """Wherever the worker is started."""
    tap(tmp_path / "plugins" / "pathtap.py")

    assert plugins("plugins", folder=tmp_path).may_load("pathtap:TapConnector")


def test_a_plugin_cannot_take_the_place_of_an_installed_module(tmp_path: Path):
    """Nor can a request reach that one by its name, or one beside the folders."""
    for name in ("json", "headrace", "builtins"):
        tap(tmp_path / "in" / name / "__init__.py")
    tap(tmp_path / "pathbeside.py")
    sys.path.append(str(tmp_path))
    found = plugins(tmp_path / "in")

    for name in ("json.decoder", "headrace.cli", "builtins", "pathbeside", "", ".."):
        with pytest.raises(UnknownConnectorError, match=r"may be loaded|Failed to find"):
            found.connector_class(f"{name}:TapConnector")
    assert not str(importlib.import_module("json").__file__).startswith(str(tmp_path))
    assert "pathbeside" not in sys.modules
    assert "another installed module has this name" in str(sources(found)["json"])


def test_service_load_lists_only_what_has_registered_itself(tmp_path: Path):
    """The rest is not imported before somebody names it."""
    installed(tmp_path, "pathorders", "Orders")
    tap(tmp_path / "pathtap.py")
    found = plugins(tmp_path, plugin_discovery="SERVICE_LOAD")

    assert {"pathorders:OrdersConnector": None} == sources(found)
    assert "pathtap" not in sys.modules
    assert "TapConnector" == found.connector_class("pathtap:TapConnector").__name__


def test_folders_of_java_and_missing_ones_are_logged_and_do_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """One sentence for all the jars."""
    for number in range(5):
        (tmp_path / "java" / f"plugin-{number}").mkdir(parents=True)
        (tmp_path / "java" / f"plugin-{number}" / "a.jar").touch()
    found = plugins(tmp_path / "java", tmp_path / "lost")

    assert {} == sources(found)
    named = ", ".join(str(tmp_path / "java" / f"plugin-{number}") for number in range(3))
    assert [
        f"plugin.path: {tmp_path / 'lost'} cannot be read: No such file or directory.",
        (
            f"plugin.path: the jars in {named} and others are ignored: Java plugins cannot run here, "
            "only Python plugins."
        ),
    ] == caplog.messages


def test_an_unknown_class_is_refused_with_what_there_is(tmp_path: Path):
    """What cannot be imported is not offered."""
    tap(tmp_path / "pathtap.py")
    (tmp_path / "pathbroken.py").write_text("1 / 0", "utf-8")
    judge = validator({"plugin.path": str(tmp_path)})

    with pytest.raises(BadRequestError) as refused:
        judge.validate({"name": "c", "connector.class": "nope"})

    assert (
        "Failed to find any class that implements Connector and which name matches nope, available "
        f"connectors are: {', '.join(CONNECTORS)}, pathtap:TapConnector"
    ) == str(refused.value)
