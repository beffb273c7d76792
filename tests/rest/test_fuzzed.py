"""Whatever is sent, the answer is one of Kafka Connect's, and nothing unforeseen happens inside.

Also where the description of the API has nothing to say: at paths and with methods that it does not name, and
with bodies that are no JSON.
"""

from __future__ import annotations

import json
import logging
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from project.sampling import drawn
from rest.fake_herder import FakeHerder

WORDS = [
    "connectors",
    "c",
    "config",
    "status",
    "offsets",
    "topics",
    "reset",
    "tasks",
    "0",
    "restart",
]
MORE = ["pause", "connector-plugins", "validate", "admin", "loggers", "root.fuzzed", "health"]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
STATUSES = {200, 201, 202, 204, 400, 404, 405, 406, 415, 500}

SEGMENTS = st.sampled_from([*WORDS, *MORE]) | st.text(min_size=1, max_size=4)
FIELDS = st.sampled_from(
    ["name", "config", "offsets", "initial_state", "partition", "offset", "level"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=drawn(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(METHODS),
    path=st.lists(SEGMENTS.filter(lambda each: each.isascii() or each.isprintable()), max_size=5),
    body=VALUES.map(json.dumps).map(str.encode) | st.binary(max_size=20),
)
def test_anything(
    client: httpx.Client, herder: FakeHerder, *, method: str, path: list[str], body: bytes
):
    """Errors have Kafka Connect's form, successes are JSON, and no trace is logged."""
    lines = list[logging.LogRecord]()
    listener = logging.Handler()
    listener.emit = lines.append
    logger = logging.getLogger("headrace.rest.errors")
    logger.addHandler(listener)
    at = "/" + "/".join(quote(each, safe="").replace(".", "%2E") for each in path)
    try:
        headers = {"Content-Type": "application/json"}
        answer = client.request(method, at, content=body, headers=headers)
    finally:
        logger.removeHandler(listener)

    assert answer.status_code in STATUSES
    assert [] == lines
    if method not in {"HEAD", "OPTIONS"} and answer.content:
        shown = answer.json()
        assert answer.is_success or {"error_code": answer.status_code} | shown == shown
