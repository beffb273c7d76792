"""The connectors of the command line, asked for beside the main thread: Kafka may have to be waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from headrace.cli.plugins_ahead import import_ahead
from headrace.runtime.settings.connector_files import ConnectorFile
from headrace.runtime.standalone.command_line import take_in
from headrace.runtime.standalone.herder import StandaloneHerder


class Loading:
    """Asks *herder* for the connectors in *files*; then all of its connectors may run.

    At last *ahead* is given the herder's list of plugins, to be asked for early.
    """

    def __init__(
        self,
        files: Sequence[ConnectorFile],
        herder: StandaloneHerder,
        *,
        ahead: Callable[[Callable[[], object]], None] = import_ahead,
    ) -> None:
        self._files = files
        self._herder = herder
        self._ahead = ahead
        self.failure: Exception | None = None
        """Why a connector was refused; the main thread raises it."""

    def start(self) -> None:
        """Begin, and return at once."""
        threading.Thread(target=self._load, name="headrace-files", daemon=True).start()

    def _load(self) -> None:
        try:
            take_in(self._files, self._herder)
        except Exception as error:  # noqa: BLE001 (the main thread raises it)
            self.failure = error
        else:
            self._herder.ready()
            self._ahead(self._herder.plugins)
