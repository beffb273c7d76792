"""A connector that passes record batches on, with its offsets in a group, as its configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from doubles.copied_positions import PATH
from doubles.puppets import PlannedPuppet
from headrace.connect.connector import ExactlyOnceSupport
from headrace.connect.group_offsets import OffsetGroup

GROUP = OffsetGroup(group_id="connect-c", codec=PATH, config={"alias": "a"})


class CopyingConnector(PlannedPuppet):
    """Copies partitions."""

    def offset_group(self, props: Mapping[str, str]) -> OffsetGroup | None:
        """One named after the connector."""
        return GROUP

    def returns_encoded(self, props: Mapping[str, str]) -> bool:
        """Always."""
        return True

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Unless a setting turns it off."""
        is_off = props.get("off") == "true"
        return ExactlyOnceSupport.UNSUPPORTED if is_off else ExactlyOnceSupport.SUPPORTED
