"""The settings of Azure Blob Storage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.connect.config import Config, Problem
from headrace.connect.setting import Password, setting
from headrace.stores import network_settings as network
from headrace.stores.azure.account import Account, of_connection_string


def _account_problem(name: str) -> str | None:
    # Emulators have accounts with names that Azure's own must not have.
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return None
    return "Give the account's name alone; an address belongs into azure.endpoint."


class AzureConfig(Config):
    """Where a container of Azure Blob Storage is, who asks, and how patiently.

    Without a key, a signature or a connection string the usual chain is asked: environment, workload
    identity, managed identity, the login of Azure's tools.
    """

    container: str = setting(
        "azure.container", importance="high", non_empty=True, doc="The container's name."
    )
    account: str | None = setting(
        "azure.account",
        default=None,
        importance="high",
        non_empty=True,
        valid=_account_problem,
        doc="The storage account's name. Needed without a connection string.",
    )
    endpoint: str | None = setting(
        "azure.endpoint",
        default=None,
        non_empty=True,
        doc="The address of the account's blobs, for an emulator, another cloud or a private endpoint. "
        "Default: https://ACCOUNT.blob.core.windows.net.",
    )
    account_key: Password | None = setting(
        "azure.account.key", default=None, doc="A key of the account."
    )
    sas_token: Password | None = setting(
        "azure.sas.token",
        default=None,
        doc="A shared access signature, as the query of an address: sv=…&sig=….",
    )
    connection_string: Password | None = setting(
        "azure.connection.string",
        default=None,
        doc="All of account, endpoint and key or signature in one, as Azure's portal shows it.",
    )
    anonymous: bool = setting(
        "azure.anonymous",
        default=False,
        doc="Whether to ask without any credentials: public containers.",
    )
    page_size: int = network.page_size("azure", 5000)
    verify_tls: bool = network.verify_tls("azure")
    ca_file: str | None = network.ca_file("azure")
    connect_timeout_ms: int = network.connect_timeout_ms("azure")
    read_timeout_ms: int = network.read_timeout_ms("azure")
    retries: int = network.retries("azure")
    backoff_ms: int = network.backoff_ms("azure")
    backoff_max_ms: int = network.backoff_max_ms("azure")

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        yield from network.endpoint_problems("azure.endpoint", self.endpoint)
        secrets = [self.account_key, self.sas_token, self.connection_string]
        if len([each for each in secrets if each]) + self.anonymous > 1:
            yield (
                "azure.account.key",
                "Give a key, a signature, a connection string or azure.anonymous, but only one of them.",
            )
        elif self.connection_string and (self.account or self.endpoint):
            yield "azure.connection.string", "It tells account and endpoint: leave these out."
        else:
            try:
                account = self.storage_account()
            except ValueError as error:
                yield self._culprit(), str(error)
            else:
                if account.needs_token and account.endpoint.startswith("http://"):
                    yield (
                        "azure.endpoint",
                        "A login's token is sent over https only. Use it, or give a key or a signature.",
                    )
        yield from network.tls_problems(self, "azure")

    def _culprit(self) -> str:
        """The setting of which an account cannot be made."""
        if self.connection_string:
            return "azure.connection.string"
        if not self.account:
            return "azure.account"
        return "azure.account.key" if self.account_key else "azure.sas.token"

    def storage_account(self) -> Account:
        """The account that these settings describe. Raises ``ValueError`` with a sentence."""
        if self.connection_string:
            return of_connection_string(self.connection_string.value)
        if not self.account:
            raise ValueError("Give the account's name, or azure.connection.string.")
        return Account.of(
            name=self.account,
            endpoint=self.endpoint,
            key=self.account_key.value if self.account_key else None,
            sas=self.sas_token.value if self.sas_token else None,
            anonymous=self.anonymous,
        )
