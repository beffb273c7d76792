"""Offsets of a flow that does not run: its worker is opened, with its connectors stopped, for one command."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from headrace.cli.mirror_flows import FlowWorker, MirrorFile, flow_workers
from headrace.cli.mirror_process import opened_state_folder, state_file
from headrace.cli.rest_client import RestClient
from headrace.connect.errors import ConfigError
from headrace.herder.protocol import Herder
from headrace.observe.log_format import configure_logging
from headrace.rest.app import App, HandlerThreads, herder_routes
from headrace.rest.bodies import RequestBodies
from headrace.rest.config import RestConfig
from headrace.rest.connections import Connections
from headrace.storage.sqlite_file import FileInUseError
from headrace.worker import stopped

# Requests need one, and their answers name it; nothing listens there.
_HERE: Final = "http://localhost"


def options_of(file: Path, flow: FlowWorker, folder: Path | None, *, answers: bool) -> str:
    """The options by which ``headrace offsets`` reaches the connectors of *flow*, as a shell takes them. Pure.

    *folder* is that of the state files, if one was given; *answers* says whether the flow's listeners are open while it
    runs.
    """
    if answers and (url := flow.url) is not None:
        return f"--url {shlex.quote(url)}"
    state = "" if folder is None else f" --state {shlex.quote(str(folder.absolute()))}"
    return f"--mirror {shlex.quote(str(file.absolute()))} --flow {shlex.quote(flow.name)}{state}"


@contextmanager
def stopped_flow(file: Path, name: str | None, folder: Path | None) -> Generator[RestClient]:
    """A client of the worker of a flow of *file*, none of whose connectors runs meanwhile.

    *name* may be left out where the file enables one flow only. The worker is in this process, and no other one reaches it.
    That the connectors are stopped is not stored: however the process ends, they are in the states that they were in. Raises
    :class:`~headrace.connect.errors.ConfigError` while another process runs the flow with the same state folder.
    """
    configure_logging("WARNING", as_json=False)
    read = MirrorFile.read(file)
    flow = _chosen(file, flow_workers(read, read.config.flows), name)
    path = state_file(opened_state_folder(file, folder, os.environ), flow.name)
    with (
        _only_here(flow.name, path),
        stopped(flow.config, flow.connectors, state_file=path) as herder,
        RestClient(_HERE, transport=_InThisProcess(herder)) as client,
    ):
        yield client


@contextmanager
def _only_here(flow: str, path: Path) -> Generator[None]:
    try:
        yield
    except FileInUseError as error:
        told = (
            f"is in use by the process {error.holder}: the flow runs there, or another command is about its offsets. Stop 'headrace "
            "mirror', repeat this command, and start it again."
        )
        raise ConfigError(
            [(str(path), told)], where=f"The state file of the flow {flow}"
        ) from error


class _InThisProcess(httpx.BaseTransport):
    """Has a herder answer requests as a worker's listeners do, of which there are none. Used by one thread."""

    def __init__(self, herder: Herder) -> None:
        app = App(
            routes=herder_routes(herder),
            threads=HandlerThreads(herder.stage),
            bodies=RequestBodies(RestConfig.parse({}).max_body_bytes),
            connections=Connections(),
        )
        self._transport = httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, with its whole body."""
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=body)


def _chosen(file: Path, flows: Sequence[FlowWorker], name: str | None) -> FlowWorker:
    known = [each for each in flows if each.source is not None]
    found = [each for each in known if name in (None, each.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in known)
    told = f"It is to be one of those that {file} enables: {names or 'none'}."
    raise ConfigError([("--flow", told)], where="The command line")
