"""Keys that look like secrets."""

from __future__ import annotations

import pytest

from headrace.config.secret_values import is_secret_key


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("producer.override.sasl.jaas.config", True),
        ("ssl.keystore.password", True),
        ("aws.secret.access.key", True),
        ("aws.access.key.id", True),
        ("schema.registry.basic.auth.user.info", True),
        ("gcs.credentials", True),
        ("API.Key", True),
        ("key.converter", False),
        ("linger.ms", False),
        ("topic", False),
    ],
)
def test_a_key_tells_whether_its_value_is_a_secret(key: str, *, secret: bool):
    """By words of its name, in any case."""
    assert secret is is_secret_key(key)
