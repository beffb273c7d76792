"""Which outlet a slot's work asks for."""

from __future__ import annotations

import time

from headrace.converters import make_converter, make_header_converter
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.sender import RecordSender, Sender
from headrace.observe.hidden import Hidden
from headrace.slot.boundary import Boundary
from headrace.slot.channel import ChannelClient
from headrace.slot.commit_making import made_commits
from headrace.slot.encoding import Encoder
from headrace.slot.outlet import Outlet
from headrace.slot.retrying import Retrying
from headrace.slot.tolerance import Tolerance
from headrace.slot.topic_making import TopicMaking
from headrace.slot.work import Progress, SlotWork


def made_outlet(
    work: SlotWork, sender: Sender, client: ChannelClient, progress: Progress, *, retrying: Retrying
) -> Outlet:
    """The way of frames to Kafka by *sender*, as *work* says; conversions are tried again by *retrying*.

    The time of the first commit is counted from here. Raises what converters raise whose settings are wrong.
    """
    commits = made_commits(work, sender, client)
    return Outlet(
        sender=_record_sender(work, sender),
        commits=commits,
        tolerance=Tolerance(
            work.errors,
            progress,
            sender=sender,
            commits=commits,
            connector=work.connector,
            task=work.task,
            hidden=Hidden(values=work.hidden),
        ),
        boundary=Boundary(
            kind=work.boundary,
            interval_seconds=work.commit_seconds,
            committed_at=time.monotonic(),
        ),
        encoder=_encoder(work, retrying),
    )


def _encoder(work: SlotWork, retrying: Retrying) -> Encoder:
    key, value, header = work.key_converter, work.value_converter, work.header_converter
    return Encoder(
        make_converter(key.class_name, key.config, is_key=True),
        make_converter(value.class_name, value.config, is_key=False),
        make_header_converter(header.class_name, header.config),
        retrying=retrying,
    )


def _record_sender(work: SlotWork, sender: Sender) -> RecordSender:
    if not work.topic_groups:
        return sender
    return TopicMaking(sender, KafkaAdmin(client_config(work.admin)), work.topic_groups)
