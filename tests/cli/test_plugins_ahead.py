"""`headrace run` imports its plugins before they are requested, and no one waits for that."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headrace.cli.run import Loading, import_ahead
from waiting import until


def test_plugins_are_imported_on_a_thread_that_nothing_waits_for() -> None:
    """A daemon, so that the process may end meanwhile."""
    calls, may_end = list[threading.Thread](), threading.Event()

    def plugins() -> None:
        calls.append(threading.current_thread())
        assert may_end.wait(10)

    import_ahead(plugins, after_seconds=0)

    until(lambda: calls)
    assert calls[0].daemon
    assert calls[0] is not threading.current_thread()
    may_end.set()


def test_plugins_that_cannot_be_listed_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """As a warning; the worker continues."""

    def plugins() -> None:
        raise OSError("no disk")

    import_ahead(plugins, after_seconds=0)

    until(lambda: caplog.messages)
    assert ["The plugins could not be listed: no disk"] == caplog.messages


def test_a_worker_imports_its_plugins_once_connectors_may_run() -> None:
    """Not before: the first of them have imports of their own."""
    calls = list[str]()

    class Herder:
        """Notes its calls."""

        def connectors(self) -> tuple[()]:
            """None are stored."""
            return ()

        def ready(self) -> None:
            """Connectors may run."""
            calls.append("ready")

        def plugins(self) -> tuple[()]:
            """None."""
            calls.append("plugins")
            return ()

    herder: Any = Herder()
    Loading((), herder, ahead=lambda plugins: plugins()).start()

    until(lambda: "plugins" in calls)
    assert ["ready", "plugins"] == calls
