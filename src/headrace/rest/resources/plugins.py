"""``/connector-plugins``: what configurations may name, its settings, and validation."""

from __future__ import annotations

from headrace.rest import wire
from headrace.rest.asked import Answer, Asked
from headrace.rest.bodies import config_body
from headrace.runtime.herder.answers import PluginKind
from headrace.runtime.herder.herder import Herder


class Plugins:
    """Handlers of ``/connector-plugins``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def every(self, asked: Asked) -> Answer:
        """``GET /connector-plugins``: only connectors unless ``connectorsOnly=false`` (KIP-769)."""
        found = self._herder.plugins()
        if asked.flag("connectorsOnly", default=True):
            found = [each for each in found if each.kind is PluginKind.SOURCE]
        return Answer(content=[wire.plugin(each) for each in found])

    def settings(self, asked: Asked) -> Answer:
        """``GET /connector-plugins/{plugin}/config``."""
        found = self._herder.plugin_settings(asked.name, asked.text("version"))
        return Answer(content=[wire.key(each) for each in found])

    def validate(self, asked: Asked) -> Answer:
        """``PUT /connector-plugins/{plugin}/config/validate``."""
        found = self._herder.validate(asked.name, config_body(asked.body))
        return Answer(content=wire.config_infos(found))
