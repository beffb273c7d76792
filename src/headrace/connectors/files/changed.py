"""What people are told of a file that is not the one that was read, or not only. Pure."""

from __future__ import annotations

from typing import Final

from headrace.connectors.files.candidate import Candidate, Rules
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.tail import ADVICE, TAIL, can_go_on

READ_ON: Final = (
    "It is longer than it was, and read on from where it was read to, as files.changed=tail says."
)
_TAIL_FIRST: Final = (
    "It is longer now: where it only grew, say with files.changed=tail that it is to be read on from where it "
    "was read to."
)


def replaced(noun: str = "file") -> str:
    """That another one is there; *noun* is what people call it."""
    return f"The {noun} was replaced by another one after records of it were sent."


def same_size(noun: str) -> str:
    """That another one is there that is as long."""
    return (
        f"The {noun} was replaced by one of the same size after it was read to its end, which is taken for the same, "
        "as files.changed=tail says."
    )


def grew(count: int) -> str:
    """That there is more of a file than what was all of it."""
    return f"The file grew by {count} bytes after it was read to its end."


def shrank(size: int, before: int, read: int, noun: str) -> str:
    """That there is less than what was sent, or than what was there then."""
    told = f"The {noun} shrank to {size} bytes"
    if size < read:
        return f"{told}; records of its first {read} were sent."
    return f"{told}; it had {before} when records of it were sent."


def put_back(noun: str = "file") -> str:
    """What can be done about any of these."""
    return (
        f"Put the {noun} back, or say with files.changed=reread that it is to be read again from its beginning, "
        "or with files.changed=ignore that it is to be left alone."
    )


def advice(candidate: Candidate, progress: Progress, rules: Rules) -> str:
    """What can be done about the one of *candidate*."""
    rest = put_back(noun_of(rules))
    if rules.changed == TAIL:
        return f"{ADVICE} {rest}"
    return f"{_TAIL_FIRST} {rest}" if _may_go_on(candidate, progress, rules) else rest


def noun_of(rules: Rules) -> str:
    """What people call what is read."""
    return "file" if rules.grow else "object"


def _may_go_on(candidate: Candidate, progress: Progress, rules: Rules) -> bool:
    """Whether ``tail`` would read on, and the settings allow it."""
    if rules.cleanup or rules.split_bytes or not candidate.kept or candidate.torn:
        return False
    return candidate.file.size > progress.size > 0 and can_go_on(candidate, progress)
