"""Offsets of a flow that does not run: its worker is opened, with its connectors stopped, for one command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from headrace.cli.mirror_flows import FlowWorker, MirrorFile, flow_workers
from headrace.cli.mirror_process import state_file, state_folder
from headrace.connect.errors import ConfigError
from headrace.herder.answers import TargetState
from headrace.observe.log_format import configure_logging
from headrace.rest.config import RestConfig
from headrace.rest.listeners import Binding
from headrace.rest.server import RestServer
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import serving, stored

_HERE: Final = {"listeners": "http://127.0.0.1:0"}


def options_of(file: Path, flow: FlowWorker, folder: Path | None) -> str:
    """The options by which ``headrace offsets`` reaches the connectors of *flow*, as a shell takes them. Pure.

    *folder* is that of the state files, if one was given.
    """
    if (url := flow.url) is not None:
        return f"--url {shlex.quote(url)}"
    state = "" if folder is None else f" --state {shlex.quote(str(folder.absolute()))}"
    return f"--mirror {shlex.quote(str(file.absolute()))} --flow {shlex.quote(flow.name)}{state}"


@contextmanager
def stopped_flow(file: Path, name: str | None, folder: Path | None) -> Generator[str]:
    """The URL, on this machine, of the worker of a flow of *file*, none of whose connectors runs meanwhile.

    *name* may be left out where the file enables one flow only. The states that its connectors were in are theirs again
    afterwards. Raises :class:`~headrace.connect.errors.ConfigError` while another process runs the flow.
    """
    configure_logging("WARNING", as_json=False)
    read = MirrorFile.read(file)
    flow = _chosen(file, flow_workers(read, read.config.flows), name)
    states = state_folder(file, folder, os.environ)
    states.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        storage = SqliteStorage(state_file(states, flow.name))
        opened.callback(storage.close)
        before = storage.configs.connectors()
        herder = opened.enter_context(
            serving(
                flow.config,
                state_file=storage,
                emit=lambda _: None,
                worker_id=flow.name,
                validated=flow.connectors,
            )
        )
        herder.start_only(
            [replace(each, target_state=TargetState.STOPPED) for each in stored(flow.connectors)]
        )
        rest = RestConfig.parse(_HERE)
        binding = Binding.of(rest)
        server = RestServer(herder, rest, binding=binding)
        server.start()
        try:
            yield binding.url
        finally:
            herder.refuse_waiting()
            server.close()
            for each in stored(flow.connectors):
                storage.configs.put_connector(before.get(each.name, each))


def _chosen(file: Path, flows: Sequence[FlowWorker], name: str | None) -> FlowWorker:
    known = [each for each in flows if each.source is not None]
    found = [each for each in known if name in (None, each.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in known)
    told = f"It is to be one of those that {file} enables: {names or 'none'}."
    raise ConfigError([("--flow", told)], where="The command line")
