"""The settings that say how what was read is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from headrace.connect.config import Config
from headrace.connect.setting import SettingType, setting

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000


class TrackingConfig(Config):
    """One entry for each file that exists, or a mark up to which all is read."""

    tracking: Literal["object", "ordered"] = setting(
        "files.tracking",
        default="object",
        doc="object: the offsets have one entry for each file that exists. ordered, for files whose names "
        "rise: one mark, up to which everything is read, and entries for what sorts behind it. A file that "
        "comes under a name up to the mark is not read.",
    )
    forget_after_ms: int = setting(
        "files.forget.after.ms",
        kind=SettingType.LONG,
        default=_DAY_MS,
        at_least=0,
        doc="How long a file that was read must be missing from every listing before it counts as gone for good: "
        "with object its entry is removed; with ordered, where its folder shows nothing at all for so long in "
        "one run, it does not hold up the mark any more. 0: at the first listing without it.",
    )
    lookback: int = setting(
        "files.lookback",
        kind=SettingType.LONG,
        default=1000,
        at_least=0,
        doc="With files.tracking=ordered: how many of the files that were read last stay behind the mark, so "
        "that files whose names sort between them are still found. 0: none.",
    )
    late_check_ms: int = setting(
        "files.late.check.ms",
        kind=SettingType.LONG,
        default=_HOUR_MS,
        at_least=0,
        doc="With files.tracking=ordered: how often, and at the start, everything is listed to tell of files that "
        "came too late. 0: never; a store is then always listed from the mark on.",
    )


def tracking_problems(config: FilesConfig) -> Iterator[Problem]:
    """Rules across these settings and others."""
    if config.tracking == "object":
        for name in ("files.lookback", "files.late.check.ms"):
            if name in config.originals:
                told = "It has no effect without files.tracking=ordered."
                yield name, f"{told} Set that, or remove {name}."
        return
    if config.follow:
        told = "With files.follow=true no file is ever read to its end for good, so that no mark could pass it."
        yield "files.tracking", f"{told} Choose one of the two."
    if config.changed == "tail":
        told = "With files.changed=tail files may grow, but what grows before the mark is not looked at again."
        yield "files.tracking", f"{told} Choose one of the two."
    elif config.lookback == 0 and config.originals.get("files.changed", "ignore") != "ignore":
        told = f"With files.tracking=ordered, files.changed={config.changed} holds for the files within the look-back"
        advice = "Raise files.lookback, or remove files.changed."
        yield "files.changed", f"{told}, and files.lookback=0 leaves none. {advice}"
