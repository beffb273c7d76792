"""A client of S3, as the configuration wants it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, cast

import boto3
import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.loaders import Loader, create_loader

from headrace.stores.s3.config import S3Config
from headrace.stores.s3.pages import read_objects

_DEFAULT_REGION = "us-east-1"

Operation = Callable[..., dict[str, Any]]
"""Takes S3's request as keywords and returns S3's answer."""


class S3Client(Protocol):
    """The operations of boto3's client that are used here; requests and answers are S3's own."""

    list_objects_v2: Operation
    head_object: Operation
    get_object: Operation
    copy_object: Operation
    delete_object: Operation
    get_object_tagging: Operation
    put_object_tagging: Operation
    create_multipart_upload: Operation
    upload_part_copy: Operation
    complete_multipart_upload: Operation
    abort_multipart_upload: Operation


def client_of(config: S3Config) -> S3Client:
    """A client that tries once: trying again is :class:`~.retries.Retries`'s, for all stores alike.

    Raises botocore's own errors for a profile or a file that does not exist.
    """
    core = botocore.session.Session()
    session = boto3.Session(
        botocore_session=core,
        aws_access_key_id=config.access_key_id,
        aws_secret_access_key=_secret(config.secret_access_key),
        aws_session_token=_secret(config.session_token),
        region_name=config.region,
        profile_name=config.profile,
    )
    # Behind the constructor, which adds to the loader that it finds.
    core.register_component("data_loader", _descriptions())
    client = session.client(
        "s3",
        region_name=session.region_name or _DEFAULT_REGION,
        endpoint_url=config.endpoint,
        verify=(config.ca_file or None) if config.verify_tls else False,
        config=_options(config),
    )
    client.meta.events.register("before-call.s3.GetObject", _ask_for_checksum)
    # By this name it comes before botocore's own look into the body, which then is a short one.
    client.meta.events.register("before-parse.*.ListObjectsV2", read_objects)
    return cast("S3Client", client)


@functools.cache
def _descriptions() -> Loader:
    """Reads the descriptions of S3; they are most of the tenth of a second that a client takes without it."""
    return create_loader(botocore.session.Session().get_config_variable("data_path"))


def _options(config: S3Config) -> Config:
    return Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=config.connect_timeout_ms / 1000,
        read_timeout=config.read_timeout_ms / 1000,
        s3={"addressing_style": _style(config)},
        signature_version=UNSIGNED if config.anonymous else None,
        # Compared in RangedReader, which also can when the body came in several answers.
        response_checksum_validation="when_required",
        request_checksum_calculation="when_required",
        user_agent_extra="headrace",
    )


def _style(config: S3Config) -> str:
    if config.path_style is None:
        return "path" if config.endpoint else "auto"
    return "path" if config.path_style else "virtual"


def _ask_for_checksum(params: dict[str, Any], **_: object) -> None:
    """Ask for the checksum without botocore's own comparison, which a body cut in two would fail."""
    if "Range" not in params["headers"]:
        params["headers"]["x-amz-checksum-mode"] = "ENABLED"


def _secret(password: object) -> str | None:
    return getattr(password, "value", None)
