"""Wrong connection settings end in a sentence about the user's configuration, whichever client is made first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.connect.errors import ConfigError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import ClientConfig, client_config
from headrace.kafka.compacted_topic import CompactedLog

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


def _log(config: ClientConfig) -> CompactedLog:
    # Its consumer is asked, too: the admin client that it makes first would refuse the same.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.kafka.compacted_topic.KafkaAdmin", lambda _: None)
        return CompactedLog("topic", config, on_record=lambda _: None)


@pytest.mark.parametrize("make", [KafkaAdmin, _log])
@pytest.mark.parametrize(("wrong", "key", "told"), WRONG)
def test_what_the_client_refuses_is_reported(
    make: Callable[[ClientConfig], object], wrong: dict[str, str], key: str, told: str
) -> None:
    """By the user's key, with what is wrong about it; no broker is asked."""
    with pytest.raises(ConfigError) as caught:
        make(client_config({"bootstrap.servers": "127.0.0.1:1", **wrong}))

    [(named, sentence)] = caught.value.problems
    assert key == named
    assert told in sentence
