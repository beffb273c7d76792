"""Options of commands that ask a worker: which worker, as whom, and in which form the answer is printed."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Concatenate, Final
from urllib.parse import urlsplit

import click

from headrace.cli.rest_client import RestClient, WorkerError

_URL = "http://127.0.0.1:8083"
PASSWORD: Final = "HEADRACE_PASSWORD"  # noqa: S105 - the name of a variable
"""The variable that holds a user's password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A worker to ask, and whether the answer is for a program."""

    worker: RestClient
    as_json: bool

    def show(self, answer: object, lines: Iterable[str]) -> None:
        """Print *answer* for a program, *lines* for people."""
        if self.as_json:
            click.echo(json.dumps(answer, indent=2))
            return
        for line in lines:
            click.echo(line)


def asks_worker(
    command: Callable[Concatenate[Asking, ...], None],
) -> Callable[..., None]:
    """Give a command the options that name a worker, and as its first argument the worker."""

    @click.option(
        "--url",
        envvar="HEADRACE_URL",
        default=_URL,
        show_default=True,
        callback=_checked_url,
        help="Where the worker is; HEADRACE_URL says it, too.",
    )
    @click.option(
        "--user", help=f"Who you are; the password is taken from {PASSWORD}, or asked for."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
    @functools.wraps(command)
    def asked(
        *arguments: object, url: str, user: str | None, as_json: bool, **options: object
    ) -> None:
        login = None if user is None else (user, _password(user))
        with RestClient(url, login=login) as worker:
            command(Asking(worker=worker, as_json=as_json), *arguments, **options)

    return asked


def _checked_url(_ctx: click.Context, _option: click.Parameter, given: str) -> str:
    try:
        url = urlsplit(given)
        has_place = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        url, has_place = urlsplit(""), False
    if "@" in given:
        # Not repeated: it may hold a password.
        raise click.BadParameter(
            f"it holds a user. Give --user, and the password in {PASSWORD} or when asked."
        )
    if not has_place or url.query or url.fragment:
        raise click.BadParameter(f"{given} is none of http://host:port and https://host:port.")
    return given


def _password(user: str) -> str:
    given = os.environ.get(PASSWORD)
    if given is not None:
        return given
    return click.prompt(f"Password of {user}", hide_input=True, err=True, type=str)


# Somebody has pressed a key and looks at the cursor.
_SECONDS = 1.0


def completed_names(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The connectors whose names go on from *begun*; none when the worker does not answer at once."""
    url, user = ctx.params.get("url"), ctx.params.get("user")
    if not url:
        return []
    password = os.environ.get(PASSWORD)
    login = None if user is None or password is None else (user, password)
    try:
        with RestClient(url, login=login, seconds=_SECONDS) as worker:
            names = worker.understood(worker.get("connectors"), list[str])
    except WorkerError:
        # Whatever were told here would stand in the middle of the line that is being written.
        return []
    return sorted(name for name in names if name.startswith(begun))
