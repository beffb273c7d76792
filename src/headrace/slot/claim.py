"""The first and the last word of one slot to the driver."""

from __future__ import annotations

import logging
import os
import platform

from headrace import __version__
from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.observe.form import LogForm
from headrace.pids import identity_of
from headrace.slot.channel import ChannelClient
from headrace.slot.work import SlotReport, SlotWork

_log = logging.getLogger(__name__)


def claimed(client: ChannelClient) -> tuple[SlotWork, LogForm]:
    """The work of the token that *client* asks for, and how to log; only the first claim is granted.

    Raises ``StaleTokenError`` for every other one, and ``RetriableError`` when the driver does not answer.
    """
    answer = client.ask(
        "claim",
        pid=os.getpid(),
        identity=identity_of(os.getpid()),
        host=platform.node(),
        version=__version__,
    )
    if not answer["granted"]:
        raise StaleTokenError(answer["reason"])
    return SlotWork.from_message(answer["work"]), LogForm(**answer["log"])


def tell_end(client: ChannelClient, report: SlotReport) -> None:
    """Say the last word to the driver, if it listens."""
    try:
        client.ask("end", report=report.as_message())
    except RetriableError as error:
        # The driver counts a slot without a last word as lost, and fences it: nothing is at risk.
        _log.warning("%s", error)
