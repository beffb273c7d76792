"""Sentences that speak of the keys of ``files``, said with the original's keys. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.errors import ConnectError, RecordError
from headrace.connect.partition import SourcePartition
from headrace.connectors.files.aiven.keys import TRANSLATED
from headrace.connectors.files.aiven.partitions import as_theirs

SAID_BY: Final[Mapping[str, str]] = {
    # Backwards, so that the bucket, which is required, speaks for files.path.
    each.becomes: each.name
    for each in reversed(TRANSLATED)
    if each.becomes != each.name and " " not in each.becomes
} | {
    "files.recursive": "aws.s3.prefix",
    "files.distribution": "distribution.type",
    "files.name.template": "file.name.template",
}
"""Which key of the original says each key of ours that a user may not set besides."""
# What is selected is said by the prefix.
_SPOKEN: Final[Mapping[str, str]] = {
    **SAID_BY,
    "files.name.*": "file.name.template",
    "files.path": "aws.s3.prefix",
}
_OUR_KEY: Final = re.compile(rf"(?<![\w./])(?:{'|'.join(map(re.escape, _SPOKEN))})(?!\w|\.\w)")
"""One of these keys within a sentence, and not within a longer key or an address."""
_OUR_PARTITION: Final = re.compile(r'\{"filename":"(?:[^"\\]|\\.)*"\}')


def in_peers_words(sentence: str) -> str:
    """*sentence* about what happens to objects; commands in it have the original's partitions."""
    return _OUR_PARTITION.sub(_partition_of_peer, _said(sentence, _SPOKEN))


def problems_in_peers_words(problems: Iterable[Problem]) -> Iterator[Problem]:
    """*problems* of settings: of the address of the store, the bucket is the one that may be wrong."""
    for key, sentence in problems:
        yield SAID_BY.get(key, key), _said(sentence, {**_SPOKEN, **SAID_BY})


def say_in_peers_words(error: ConnectError) -> None:
    """Let *error* speak so, whatever kind of error it is."""
    error.args = tuple(
        in_peers_words(each) if isinstance(each, str) else each for each in error.args
    )
    if isinstance(error, RecordError):
        error.reason = in_peers_words(error.reason)
        error.advice = error.advice and in_peers_words(error.advice)


def _partition_of_peer(found: re.Match[str]) -> str:
    theirs = as_theirs(SourcePartition(json.loads(found[0])))
    return json.dumps(dict(theirs), ensure_ascii=False, separators=(",", ":"))


def _said(sentence: str, by: Mapping[str, str]) -> str:
    return _OUR_KEY.sub(lambda found: by[found[0]], sentence)
