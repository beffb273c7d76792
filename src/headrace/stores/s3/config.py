"""The settings of stores."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.config import Config, Problem
from headrace.connect.setting import Password, setting
from headrace.stores import network_settings as network


class S3Config(Config):
    """Where an S3 bucket is, who asks, and how patiently.

    Without keys the usual chain is asked: environment, shared files, web identity, the machine's role.
    """

    bucket: str = setting("s3.bucket", importance="high", non_empty=True, doc="The bucket's name.")
    endpoint: str | None = setting(
        "s3.endpoint",
        default=None,
        non_empty=True,
        doc="The address of an S3-compatible server, such as https://minio.example:9000. Default: Amazon's "
        "for the region.",
    )
    region: str | None = setting(
        "s3.region",
        default=None,
        non_empty=True,
        doc="The bucket's region. Default: what the environment or the shared files say, else us-east-1.",
    )
    path_style: bool | None = setting(
        "s3.path.style",
        default=None,
        doc="Whether the bucket's name stands in the path of addresses and not in front of the server's "
        "name. Default: true with s3.endpoint; else by the bucket's name.",
    )
    access_key_id: str | None = setting(
        "s3.access.key.id", default=None, non_empty=True, doc="The access key's id."
    )
    secret_access_key: Password | None = setting(
        "s3.secret.access.key", default=None, doc="The access key's secret part."
    )
    session_token: Password | None = setting(
        "s3.session.token", default=None, doc="The token that belongs to a temporary access key."
    )
    profile: str | None = setting(
        "s3.profile",
        default=None,
        non_empty=True,
        doc="The profile of the shared configuration files, which may name a role to take.",
    )
    anonymous: bool = setting(
        "s3.anonymous", default=False, doc="Whether to ask without any credentials: public buckets."
    )
    page_size: int = network.page_size("s3", 1000)
    verify_tls: bool = network.verify_tls("s3")
    ca_file: str | None = network.ca_file("s3", otherwise="those that botocore brings")
    connect_timeout_ms: int = network.connect_timeout_ms("s3")
    read_timeout_ms: int = network.read_timeout_ms("s3")
    retries: int = network.retries("s3")
    backoff_ms: int = network.backoff_ms("s3")
    backoff_max_ms: int = network.backoff_max_ms("s3")

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        yield from network.endpoint_problems("s3.endpoint", self.endpoint)
        if (self.access_key_id is None) != (self.secret_access_key is None):
            yield (
                "s3.secret.access.key",
                "Give both s3.access.key.id and s3.secret.access.key, or none.",
            )
        if self.session_token is not None and self.access_key_id is None:
            yield "s3.session.token", "A session token needs the access key that it belongs to."
        if self.anonymous and (self.access_key_id or self.profile):
            yield "s3.anonymous", "Who asks without credentials has no access key and no profile."
        if self.access_key_id and self.profile:
            yield "s3.profile", "Give an access key or a profile, not both."
        yield from network.tls_problems(self, "s3")
