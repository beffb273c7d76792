"""``/connectors``: creating, reading, changing and deleting connectors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from headrace.rest import wire
from headrace.rest.asked import Answer, Asked, nothing
from headrace.rest.bodies import config_body
from headrace.rest.path_segments import segment
from headrace.rest.resources.creation import create_request
from headrace.runtime.herder.errors import NotFoundError
from headrace.runtime.herder.herder import Herder
from headrace.runtime.herder.requests import named

_log = logging.getLogger(__name__)

_PLAIN: Final = 200
_CREATED: Final = 201


class Connectors:
    """Handlers of ``/connectors``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def every(self, asked: Asked) -> Answer:
        """``GET /connectors``: names, or with ``expand`` what is asked for about each of them."""
        expansions = asked.query.get("expand")
        if expansions is None:
            return Answer(content=list(self._herder.connectors()))
        lookups = {name: look for name, look in self._lookups().items() if name in expansions}
        for each in expansions:
            if each not in lookups:
                _log.info("Ignoring unknown expansion type %r", each)
        return Answer(content=self._expanded(lookups))

    def create(self, asked: Asked) -> Answer:
        """``POST /connectors``; 200 instead of 201 when it came with offsets, as KIP-995 says."""
        request = create_request(asked.body, dry_run=asked.switch("dry_run"))
        answer = self._herder.create(request)
        if request.dry_run:
            return Answer(content=wire.tried_creation(answer))
        status = _CREATED if answer.offsets_message is None else _PLAIN
        return Answer(
            status=status,
            content=wire.created(answer),
            headers=_location(asked, answer.info.name),
        )

    def one(self, asked: Asked) -> Answer:
        """``GET /connectors/{name}``."""
        return Answer(content=wire.connector(self._herder.info(asked.name)))

    def delete(self, asked: Asked) -> Answer:
        """``DELETE /connectors/{name}``."""
        self._herder.delete(asked.name)
        return nothing()

    def config(self, asked: Asked) -> Answer:
        """``GET /connectors/{name}/config``: as it was submitted."""
        return Answer(content=dict(self._herder.info(asked.name).config))

    def put_config(self, asked: Asked) -> Answer:
        """``PUT /connectors/{name}/config``; 201 when the connector is new."""
        config = named(asked.name, config_body(asked.body))
        answer = self._herder.put_config(asked.name, config)
        content = wire.created(answer)
        if not answer.is_new:
            return Answer(content=content)
        return Answer(status=_CREATED, content=content, headers=_location(asked, asked.name))

    def patch_config(self, asked: Asked) -> Answer:
        """``PATCH /connectors/{name}/config`` (KIP-477)."""
        answer = self._herder.patch_config(asked.name, config_body(asked.body))
        return Answer(content=wire.created(answer))

    def tasks(self, asked: Asked) -> Answer:
        """``GET /connectors/{name}/tasks``."""
        return Answer(content=[wire.task(each) for each in self._herder.tasks(asked.name)])

    def _lookups(self) -> Mapping[str, Callable[[str], wire.Json]]:
        return {
            "info": lambda name: wire.connector(self._herder.info(name)),
            "status": lambda name: wire.status(self._herder.status(name)),
        }

    def _expanded(self, lookups: Mapping[str, Callable[[str], wire.Json]]) -> wire.Json:
        shown: wire.Json = {}
        for name in self._herder.connectors():
            try:
                shown[name] = {word: look(name) for word, look in lookups.items()}
            except NotFoundError:
                # Deleted since the names were read: it is left out, as if it had been before.
                continue
        return shown


def _location(asked: Asked, name: str) -> dict[str, str]:
    return {"Location": f"{asked.origin}/connectors/{segment(name)}"}
