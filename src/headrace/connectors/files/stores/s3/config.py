"""The settings of stores."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.config import Config, Problem
from headrace.connect.setting import setting
from headrace.connect.setting_type import Password, SettingType
from headrace.connectors.files.stores.network_settings import endpoint_problems


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
    page_size: int = setting(
        "s3.page.size", default=1000, at_least=1, at_most=1000, doc="How many keys a page lists."
    )
    verify_tls: bool = setting(
        "s3.tls.verify", default=True, doc="Whether the server's certificate is checked."
    )
    ca_file: str | None = setting(
        "s3.tls.ca.file",
        default=None,
        non_empty=True,
        doc="A file with the certificates to trust, in PEM. Default: those that botocore brings.",
    )
    connect_timeout_ms: int = setting(
        "s3.connect.timeout.ms",
        default=10_000,
        at_least=1,
        doc="How long to wait for a connection.",
    )
    read_timeout_ms: int = setting(
        "s3.read.timeout.ms", default=60_000, at_least=1, doc="How long to wait for the next bytes."
    )
    retries: int = setting(
        "s3.retries",
        default=5,
        at_least=0,
        at_most=30,
        doc="How often to try again after a failure that may pass.",
    )
    backoff_ms: int = setting(
        "s3.retry.backoff.ms",
        kind=SettingType.LONG,
        default=100,
        at_least=0,
        doc="How long to wait before the first new attempt, at most; doubled for each one behind it.",
    )
    backoff_max_ms: int = setting(
        "s3.retry.backoff.max.ms",
        kind=SettingType.LONG,
        default=20_000,
        at_least=0,
        doc="The longest wait between two attempts.",
    )

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        yield from endpoint_problems("s3.endpoint", self.endpoint)
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
        if self.ca_file and not self.verify_tls:
            yield "s3.tls.ca.file", "No certificates are used while s3.tls.verify is false."
