"""`headrace takeover`: what `headrace worker` would take over from a group of Kafka Connect's workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from headrace.cli.table import one_line, table
from headrace.config.config_files import read_worker_file
from headrace.config.distributed_config import DistributedConfig
from headrace.connect.partition import OffsetValue
from headrace.herder.group_view import advertised_url
from headrace.offsets.codec import json_text
from headrace.plugins import checked_worker_of
from headrace.rest.config import rest_problems
from headrace.worker.takeover import (
    FoundConnector,
    FoundOffset,
    FoundTopic,
    Takeover,
    found_takeover,
    settled,
)

_RIGHTS: Final = "Rights: configurations, offsets and states were read, and the group was described; rights to write and to create were not tried."


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Look, and change nothing.")
@click.option(
    "--settle",
    is_flag=True,
    help="Write committed offsets again that a Java worker would not find.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def takeover(worker_config: Path, *, check: bool, settle: bool, as_json: bool) -> int:
    """Show what a worker with WORKER_CONFIG would take over from its group.

    WORKER_CONFIG is that of Kafka Connect's distributed workers. The group's connectors, their states and committed offsets are
    shown, what would keep one of them from running, the group's members, and its topics. With --check nothing is written, created
    or joined, so that rights to do so are not checked.

    --settle is for the way back. A Java worker without exactly-once takes the newest record of an offset, even if its transaction was
    aborted, and finds no key whose fields are in another order than its own. Such offsets are written again, and what was found
    before is shown. Stop the group's workers first.

    Ends with 1 if something is in the way: members that are still there, a topic that cannot be used, or a connector that cannot
    run.
    """
    if check == settle:
        raise click.UsageError("Say either --check or --settle.")
    config = checked_worker_of(
        DistributedConfig,
        read_worker_file(worker_config),
        where=str(worker_config),
        folder=worker_config.absolute().parent,
        also=rest_problems,
    )
    found = found_takeover(config)
    count = settled(config, found) if settle else 0
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
    else:
        for line in _lines(found):
            click.echo(line)
    if settle and not as_json:
        click.echo(f"Offsets written again: {count}.")
    return 0 if found.is_as_it_is else 1


def _lines(found: Takeover) -> Iterator[str]:
    members = [
        [each.client_id, each.host, advertised_url(each.metadata) or "-"]
        for each in found.group.members
    ]
    yield f"Group {one_line(found.group_id)}: {_group(found)}"
    if members:
        yield from table(("MEMBER", "HOST", "URL"), members)
    yield ""
    yield from table(
        ("TOPIC", "PARTITIONS", "CLEANUP POLICY", "SETTING"),
        [_topic_row(each) for each in found.topics],
    )
    yield from (one_line(each.problem) for each in found.topics if each.problem)
    yield _RIGHTS
    yield ""
    if not found.connectors:
        yield "There are no connectors."
        return
    yield from table(
        ("CONNECTOR", "CLASS", "TARGET", "STATE", "TASKS", "OFFSETS", "THEN"),
        [_connector_row(each) for each in found.connectors],
    )
    for each in found.connectors:
        yield from (one_line(f"{each.name}: {problem}") for problem in each.problems)
    rows = [[each.name, *_offset_row(one)] for each in found.connectors for one in each.offsets]
    if rows:
        yield ""
        yield from table(("CONNECTOR", "PARTITION", "OFFSET", "FOR JAVA"), rows)
    if found.skipped:
        yield ""
        yield from (one_line(f"Passed over: {each}") for each in found.skipped)


def _group(found: Takeover) -> str:
    if found.group.members:
        return f"{found.group.state}. Stop these workers first; headrace does not join a group that has others:"
    return "no members"


def _topic_row(topic: FoundTopic) -> list[str]:
    if not topic.partitions:
        return [topic.name, "-", "will be created", topic.setting]
    return [
        topic.name,
        str(topic.partitions),
        ",".join(topic.policies) or "not known",
        topic.setting,
    ]


def _connector_row(connector: FoundConnector) -> list[str]:
    return [
        connector.name,
        connector.class_name,
        connector.target_state,
        connector.state or "-",
        str(connector.tasks),
        str(sum(each.offset is not None for each in connector.offsets)),
        connector.outcome,
    ]


def _offset_row(offset: FoundOffset) -> list[str]:
    remarks: list[str] = []
    if offset.aborted is not None:
        remarks.append(
            f"takes {json_text(offset.aborted)}, which was not committed, unless it has exactly-once"
        )
    if offset.is_removed:
        remarks.append(
            "finds none, as it was removed in a transaction that was not committed, unless it has exactly-once"
        )
    if offset.other_key:
        remarks.append("has another order of fields")
    return [_text(offset.partition), _text(offset.offset), "; ".join(remarks) or "same"]


def _text(values: Mapping[str, OffsetValue] | None) -> str:
    return "-" if values is None else json_text(values)


def _document(found: Takeover) -> dict[str, object]:
    return {
        "group": {
            "id": found.group_id,
            "state": found.group.state,
            "members": [
                {
                    "client_id": each.client_id,
                    "host": each.host,
                    "url": advertised_url(each.metadata),
                }
                for each in found.group.members
            ],
        },
        "topics": [
            {
                "name": each.name,
                "setting": each.setting,
                "partitions": each.partitions,
                "cleanup_policy": ",".join(each.policies) or None,
                "problem": each.problem,
            }
            for each in found.topics
        ],
        "connectors": [
            {
                "name": each.name,
                "class": each.class_name,
                "target_state": each.target_state,
                "state": each.state,
                "tasks": each.tasks,
                "offsets": [_offset_document(one) for one in each.offsets],
                "problems": list(each.problems),
                "then": each.outcome,
            }
            for each in found.connectors
        ],
        "skipped": list(found.skipped),
        "ready": found.is_as_it_is,
    }


def _offset_document(offset: FoundOffset) -> dict[str, object]:
    return {
        "partition": _plain(offset.partition),
        "offset": _plain(offset.offset),
        "aborted": _plain(offset.aborted),
        "removed": offset.is_removed,
        "other_key": offset.other_key,
    }


def _plain(values: Mapping[str, OffsetValue] | None) -> object:
    return None if values is None else json.loads(json_text(values))
