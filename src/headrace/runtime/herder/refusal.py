"""A refused creation, in Kafka Connect's words."""

from __future__ import annotations

from headrace.runtime.herder.answers import ConfigInfos
from headrace.runtime.herder.errors import BadRequestError

_LAST = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


def refusal(infos: ConfigInfos) -> BadRequestError | None:
    """The error that answers a creation or change whose validation said *infos*; ``None`` if all is well.

    Pure. Called by herders, which raise it.
    """
    if not infos.error_count:
        return None
    lines = (message for each in infos.configs for message in each.value.errors)
    first = (
        "Connector configuration is invalid and contains the following "
        f"{infos.error_count} error(s):"
    )
    return BadRequestError("\n".join((first, *lines, _LAST)))
