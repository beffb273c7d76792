"""The settings of Google Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.config import Config, Problem
from headrace.connect.setting import Password, setting
from headrace.stores import network_settings as network


class GcsConfig(Config):
    """Where a bucket of Google Cloud Storage is, who asks, and how patiently.

    Without credentials the usual chain is asked: ``GOOGLE_APPLICATION_CREDENTIALS``, gcloud's login, the
    machine's service account.
    """

    bucket: str = setting("gcs.bucket", importance="high", non_empty=True, doc="The bucket's name.")
    endpoint: str = setting(
        "gcs.endpoint",
        default="https://storage.googleapis.com",
        doc="The server's address, for an emulator or a private endpoint.",
    )
    credentials_file: str | None = setting(
        "gcs.credentials.file",
        default=None,
        non_empty=True,
        doc="The JSON file of a service account's key or of a user's login.",
    )
    credentials_json: Password | None = setting(
        "gcs.credentials.json", default=None, doc="The text of such a file."
    )
    anonymous: bool = setting(
        "gcs.anonymous",
        default=False,
        doc="Whether to ask without any credentials: public buckets.",
    )
    user_project: str | None = setting(
        "gcs.user.project",
        default=None,
        non_empty=True,
        doc="The project that pays, for buckets whose requester pays.",
    )
    page_size: int = network.page_size("gcs", 1000)
    verify_tls: bool = network.verify_tls("gcs")
    ca_file: str | None = network.ca_file("gcs")
    connect_timeout_ms: int = network.connect_timeout_ms("gcs")
    read_timeout_ms: int = network.read_timeout_ms("gcs")
    retries: int = network.retries("gcs")
    backoff_ms: int = network.backoff_ms("gcs")
    backoff_max_ms: int = network.backoff_max_ms("gcs")

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        yield from network.endpoint_problems("gcs.endpoint", self.endpoint)
        if self.credentials_file and self.credentials_json:
            yield "gcs.credentials.json", "Give the credentials or their file, not both."
        if self.anonymous and (self.credentials_file or self.credentials_json):
            yield "gcs.anonymous", "Who asks without credentials gives none."
        if self.endpoint.startswith("http://") and not self.anonymous:
            yield (
                "gcs.endpoint",
                "Credentials are sent over https only. Use it, or gcs.anonymous=true.",
            )
        yield from network.tls_problems(self, "gcs")
