"""Wrong connection settings end in a sentence about the user's configuration, of which no broker is asked."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config

WRONG = [
    ({"security.protocol": "bogus"}, "security.protocol", "bogus"),
    (
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        "sasl.username",
        "must be set",
    ),
    (
        {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"},
        "ssl.ca.location",
        "The file '/nowhere/ca.pem' cannot be read: No such file",
    ),
    (
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "NOPE"},
        "sasl.mechanism",
        "Unsupported SASL mechanism: NOPE",
    ),
]


@pytest.mark.parametrize(("wrong", "key", "told"), WRONG)
def test_what_the_client_refuses_is_reported(wrong: dict[str, str], key: str, told: str) -> None:
    """By the user's key, with what is wrong about it; no broker is asked."""
    with pytest.raises(ConfigError) as caught:
        KafkaAdmin(client_config({"bootstrap.servers": "127.0.0.1:1", **wrong}))

    [(named, sentence)] = caught.value.problems
    assert key == named
    assert told in sentence
