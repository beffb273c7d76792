"""The stores there are, by the scheme of their addresses: to add one is to add a line to the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from headrace.connect.config import Config
from headrace.connect.setting import Setting
from headrace.stores.azure.config import AzureConfig
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.s3.config import S3Config
from headrace.stores.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """A kind of store.

    *config* are its settings, of which the one called *place* and a prefix are not the user's to set: the
    address says them. *opener* is where the function is that makes a store of such a
    configuration, as ``module:function`` within this package; it is imported when a store is opened,
    because it needs *libraries*, which come with the extra *extra*. *has_tags* is what its stores'
    ``capabilities`` say. *place_names* are the names that the place may have, and *place_rule* says so.
    """

    config: type[Config]
    place: str
    place_names: re.Pattern[str]
    place_rule: str
    opener: str
    libraries: tuple[str, ...]
    extra: str
    has_tags: bool = False

    @property
    def missing(self) -> str | None:
        """The first of *libraries* that is not there."""
        return next((each for each in self.libraries if not _is_installed(each)), None)

    def settings(self) -> tuple[Setting, ...]:
        """Those that a user may set."""
        return tuple(each for each in self.config.settings() if not self._in_address(each))

    def in_address(self) -> tuple[str, ...]:
        """The names of those that an address says."""
        return tuple(each.name for each in self.config.settings() if self._in_address(each))

    def problems(self, place: str, props: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What is wrong with *props* for the store at *place*."""
        return self.config.problems({**props, self.place: place})

    def open(self, place: str, props: Mapping[str, str]) -> Store:
        """The store at *place*, as *props* say. Asks nothing of it.

        Raises :class:`~headrace.connect.errors.ConfigError`, and
        :class:`~headrace.connect.errors.TaskFailedError` for what the library does not accept.
        """
        module, _, function = self.opener.partition(":")
        make = getattr(import_module(f"{__package__}.{module}"), function)
        return make(self.config.parse({**props, self.place: place}))

    def _in_address(self, setting: Setting) -> bool:
        return setting.name == self.place or setting.attribute == "prefix"


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


KINDS: Mapping[str, StoreKind] = {
    "s3": StoreKind(
        config=S3Config,
        place="s3.bucket",
        # Old buckets, access points and other servers have names that new buckets of Amazon must not have.
        place_names=re.compile(r"[A-Za-z0-9._:-]{1,255}"),
        place_rule="A bucket's name is made of letters, digits, '.', '_' and '-'.",
        opener="s3.store:s3_store",
        libraries=("boto3", "awscrt"),
        extra="s3",
        has_tags=True,
    ),
    "gs": StoreKind(
        config=GcsConfig,
        place="gcs.bucket",
        place_names=re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
        place_rule="A bucket's name has at least 3 of a-z, 0-9, '.', '_' and '-', and a letter or digit at both "
        "ends.",
        opener="gcs.store:gcs_store",
        libraries=("google.auth",),
        extra="gcs",
    ),
    "az": StoreKind(
        config=AzureConfig,
        place="azure.container",
        place_names=re.compile(r"\$root|\$web|\$logs|(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*"),
        place_rule="A container's name has 3 to 63 of a-z, 0-9 and single '-' between them.",
        opener="azure.store:azure_store",
        libraries=("azure.identity",),
        extra="azure",
        has_tags=True,
    ),
}
"""The kinds by their scheme."""
