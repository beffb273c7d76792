"""The sender of a connector whose offsets are in a consumer group on the cluster that it writes to."""

from __future__ import annotations

from headrace.kafka.wire_sender import make_wire_sender

make_group_sender = make_wire_sender
"""Makes it, with the arguments of :func:`~headrace.kafka.client_sender.make_sender`."""
