"""Names of connectors, completed by asking the worker."""

from __future__ import annotations

import os

import click

from headrace.cli.asking import PASSWORD
from headrace.cli.rest_client import RestClient, WorkerError

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
