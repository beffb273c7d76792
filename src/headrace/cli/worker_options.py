"""Options of commands that call a worker: its URL, the user, and the form of the output."""

from __future__ import annotations

import functools
import importlib
import json
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Final
from urllib.parse import urlsplit

import click

from headrace.cli.rest_client import RestClient, WorkerError

_URL = "http://127.0.0.1:8083"
PASSWORD: Final = "HEADRACE_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable that holds a user's password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The worker to call, and whether to print JSON.

    *options* are those that name the worker in another command, as a shell takes them, with a space behind.
    """

    worker: RestClient
    as_json: bool
    options: str = ""

    def show(self, answer: object, lines: Iterable[str]) -> None:
        """Print *answer* as JSON, or else *lines*."""
        if self.as_json:
            click.echo(json.dumps(answer, indent=2))
            return
        for line in lines:
            click.echo(line)


def with_worker(
    command: Callable[Concatenate[CommandContext, ...], None],
) -> Callable[..., None]:
    """Add the options that name a worker to a command, and pass the worker as its first argument."""

    @click.option(
        "--url",
        envvar="HEADRACE_URL",
        default=_URL,
        show_default=True,
        callback=_checked_url,
        help="The URL of the worker; also taken from HEADRACE_URL.",
    )
    @click.option(
        "--user",
        help=f"The user to log in as; the password is taken from {PASSWORD}, or prompted for.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
    @functools.wraps(command)
    def with_client(
        *arguments: object, url: str, user: str | None, as_json: bool, **options: object
    ) -> None:
        login = None if user is None else (user, _password(user))
        with RestClient(url, login=login) as worker:
            called = CommandContext(
                worker=worker, as_json=as_json, options=command_options(url, user)
            )
            command(called, *arguments, **options)

    return with_client


def command_options(url: str, user: str | None) -> str:
    """What another command needs to call the worker at *url*. Pure."""
    given = [] if url == _URL else ["--url", url]
    given += [] if user is None else ["--user", user]
    return f"{shlex.join(given)} " if given else ""


def with_worker_or_flow(
    command: Callable[Concatenate[CommandContext, ...], None],
) -> Callable[..., None]:
    """As :func:`with_worker`, or with the worker of a flow that does not run, which is opened for the command."""
    called = with_worker(command)

    @click.option(
        "--mirror",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A file of 'headrace mirror', whose flow is not running now: for flows without listeners.",
    )
    @click.option("--flow", metavar="A->B", help="The flow in that file, if it enables several.")
    @click.option(
        "--state",
        type=click.Path(path_type=Path, file_okay=False),
        help="The folder of state files, if 'headrace mirror' has it as an option.",
    )
    @functools.wraps(called)
    def with_flow(
        *arguments: object,
        mirror: Path | None,
        flow: str | None,
        state: Path | None,
        **options: object,
    ) -> None:
        if mirror is None:
            if flow is not None or state is not None:
                raise click.UsageError(
                    "--flow and --state belong to a file: give it with --mirror."
                )
            called(*arguments, **options)
            return
        # With all that a worker is made of, which a client does not load.
        module = importlib.import_module("headrace.cli.mirror_offsets")
        # Those of a worker that answers elsewhere.
        del options["url"], options["user"]
        as_json = bool(options.pop("as_json"))
        with module.stopped_flow(mirror, flow, state) as worker:
            command(CommandContext(worker=worker, as_json=as_json), *arguments, **options)

    return with_flow


def _checked_url(_ctx: click.Context, _option: click.Parameter, given: str) -> str:
    try:
        url = urlsplit(given)
        has_place = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        url, has_place = urlsplit(""), False
    if "@" in given:
        # Not repeated: it may hold a password.
        raise click.BadParameter(
            f"it contains a user. Use --user, and give the password in {PASSWORD} or at the prompt."
        )
    if not has_place or url.query or url.fragment:
        raise click.BadParameter(f"{given} is neither http://host:port nor https://host:port.")
    return given


def _password(user: str) -> str:
    given = os.environ.get(PASSWORD)
    if given is not None:
        return given
    return click.prompt(f"Password of {user}", hide_input=True, err=True, type=str)


# The user has pressed Tab and waits.
_SECONDS = 1.0


def completed_names(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The connectors whose names start with *begun*; none when the worker does not answer at once."""
    return _completed(
        ctx, begun, lambda worker: worker.understood(worker.get("connectors"), list[str])
    )


def completed_workers(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """As :func:`completed_names`, for the ids of the workers of the group."""
    return _completed(
        ctx,
        begun,
        lambda worker: [
            str(each["id"])
            for each in worker.understood(worker.get("admin", "workers"), list[dict[str, object]])
        ],
    )


def _completed(
    ctx: click.Context, begun: str, names_at: Callable[[RestClient], list[str]]
) -> list[str]:
    url, user = ctx.params.get("url"), ctx.params.get("user")
    if not url:
        return []
    password = os.environ.get(PASSWORD)
    login = None if user is None or password is None else (user, password)
    try:
        with RestClient(url, login=login, seconds=_SECONDS) as worker:
            names = names_at(worker)
    except WorkerError:
        # A message would be printed in the middle of the command line.
        return []
    return sorted(name for name in names if name.startswith(begun))
