"""The settings of S3, and the client that they make."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headrace.stores.s3.client import client_of
from headrace.stores.s3.config import S3Config

BUCKET = {"s3.bucket": "bucket", "s3.region": "eu-central-1"}
KEYS = {"s3.access.key.id": "id", "s3.secret.access.key": "very-secret"}


def test_the_defaults_ask_amazon_with_the_usual_chain():
    """Nothing but a bucket is needed."""
    config = S3Config.parse({"s3.bucket": "bucket"})

    assert (None, None, 1000, True) == (
        config.endpoint,
        config.access_key_id,
        config.page_size,
        config.verify_tls,
    )


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({}, "s3.bucket"),
        ({**BUCKET, "s3.endpoint": "minio:9000"}, "s3.endpoint"),
        ({**BUCKET, "s3.access.key.id": "id"}, "s3.secret.access.key"),
        ({**BUCKET, "s3.session.token": "token"}, "s3.session.token"),
        ({**BUCKET, **KEYS, "s3.profile": "p"}, "s3.profile"),
        ({**BUCKET, **KEYS, "s3.anonymous": "true"}, "s3.anonymous"),
        ({**BUCKET, "s3.tls.verify": "false", "s3.tls.ca.file": "/ca"}, "s3.tls.ca.file"),
        ({**BUCKET, "s3.page.size": "1001"}, "s3.page.size"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_together_is_told(props: dict[str, str], key: str):
    """At the key that a person would change."""
    assert [key] == [name for name, _ in S3Config.problems(props)]


def test_secrets_are_not_shown():
    """Neither the key nor the token."""
    config = S3Config.parse({**BUCKET, **KEYS, "s3.session.token": "very-secret"})

    assert "very-secret" not in repr(config)


@pytest.mark.parametrize(
    ("more", "style"),
    [
        ({}, "auto"),
        ({"s3.endpoint": "http://127.0.0.1:9"}, "path"),
        ({"s3.endpoint": "http://127.0.0.1:9", "s3.path.style": "false"}, "virtual"),
        ({"s3.path.style": "true"}, "path"),
    ],
    ids=["amazon", "endpoint", "virtual", "path"],
)
def test_a_client_tries_once_and_addresses_as_asked(more: dict[str, str], style: str):
    """Retries are ours, for all stores alike."""
    meta = cast("Any", client_of(S3Config.parse({**BUCKET, **KEYS, **more}))).meta

    assert 1 == meta.config.retries["total_max_attempts"]
    assert style == meta.config.s3["addressing_style"]
    assert "eu-central-1" == meta.region_name
    assert more.get("s3.endpoint", "https://s3.eu-central-1.amazonaws.com") == meta.endpoint_url
