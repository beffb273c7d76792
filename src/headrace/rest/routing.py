"""Which handler answers which path and method, as a table of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.rest.asked import Handler
from headrace.rest.errors import HttpError

_ORDER = ("HEAD", "POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, in which ``{}`` stands for any one segment that is not empty, and the handler of each of its methods.

    *at_once* ones do not wait for other requests to end. Those in *own_form* do not answer in JSON, and are
    answered whatever the client accepts.
    """

    path: str
    methods: Mapping[str, Handler]
    at_once: bool = False
    own_form: bool = False

    @property
    def allow(self) -> str:
        """Every method that is answered here, as the header ``Allow`` names them."""
        implied = {"OPTIONS", "HEAD"} if "GET" in self.methods else {"OPTIONS"}
        return ", ".join(each for each in _ORDER if each in self.methods.keys() | implied)

    def handler(self, method: str) -> Handler:
        """Who answers *method*; raises 405 for none. HEAD is answered as GET, without its body."""
        found = self.methods.get("GET" if method == "HEAD" else method)
        if found is None:
            raise HttpError(405, headers={"Allow": self.allow})
        return found

    def names_in(self, segments: Sequence[str]) -> list[str] | None:
        """The segments that stand for ``{}``; ``None`` when *segments* are another path's."""
        pattern = self.path.strip("/").split("/") if self.path != "/" else []
        if len(pattern) != len(segments):
            return None
        pairs = list(zip(pattern, segments, strict=True))
        if not all(found and expected in ("{}", found) for expected, found in pairs):
            return None
        return [found for expected, found in pairs if expected == "{}"]


def routed(routes: Sequence[Route], segments: Sequence[str]) -> tuple[Route, list[str]]:
    """The route of a path and its names; raises 404 when there is none."""
    for route in routes:
        names = route.names_in(segments)
        if names is not None:
            return route, names
    raise HttpError(404)
