"""``/openapi.json``: what can be asked here and what is answered, for programs."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

from headrace.rest.asked import Answer, Asked

_FILE: Final = "openapi.json"


class Description:
    """The handler of ``/openapi.json``, which Kafka Connect does not have; called in worker threads."""

    def read(self, _asked: Asked) -> Answer:
        """``GET /openapi.json``."""
        text = files("headrace.rest").joinpath(_FILE).read_text("utf-8")
        return Answer(content=json.loads(text))
