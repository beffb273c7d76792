"""Peers that speak Kafka's protocol as a test says, for what a real broker does too rarely to wait for."""

from __future__ import annotations

import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import UUID

with warnings.catch_warnings():
    # kafka-python reads its own schemas in a way that Python 3.11 and 3.12 called outdated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
    from kafka.protocol.admin.groups import DescribeGroupsRequest, DescribeGroupsResponse
    from kafka.protocol.admin.transactions import (
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
    from kafka.protocol.consumer.group import (
        OffsetCommitRequest,
        OffsetCommitResponse,
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
    )
    from kafka.protocol.consumer.offsets import (
        ListOffsetsRequest,
        ListOffsetsResponse,
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )
    from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from kafka.protocol.metadata.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )
    from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse
    from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse
    from kafka.protocol.producer.transaction import (
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        EndTxnRequest,
        EndTxnResponse,
        InitProducerIdRequest,
        InitProducerIdResponse,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
    )
    from kafka.protocol.sasl import (
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        SaslHandshakeRequest,
        SaslHandshakeResponse,
    )

    from headrace.kafka.wire.messages import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )

from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import WireSettings

_KINDS = (
    (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    (EndTxnRequest, EndTxnResponse),
    (ProduceRequest, ProduceResponse),
    (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    (DescribeConfigsRequest, DescribeConfigsResponse),
    (DescribeGroupsRequest, DescribeGroupsResponse),
    (FetchRequest, FetchResponse),
    (OffsetCommitRequest, OffsetCommitResponse),
    (OffsetDeleteRequest, OffsetDeleteResponse),
    (OffsetFetchRequest, OffsetFetchResponse),
    (ListOffsetsRequest, ListOffsetsResponse),
    (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    (ApiVersionsRequest, ApiVersionsResponse),
    (FindCoordinatorRequest, FindCoordinatorResponse),
    (InitProducerIdRequest, InitProducerIdResponse),
    (ListTransactionsRequest, ListTransactionsResponse),
    (MetadataRequest, MetadataResponse),
    (SaslAuthenticateRequest, SaslAuthenticateResponse),
    (SaslHandshakeRequest, SaslHandshakeResponse),
)
_REQUESTS = {request.API_KEY: request for request, _ in _KINDS}
ALL_VERSIONS = {request.API_KEY: (0, request.max_version) for request, _ in _KINDS}

Script = Callable[["Received"], Any]
"""Gives the answer to a request: a response, the bytes of what is sent, or ``None`` to close the connection."""


class Received(NamedTuple):
    """A request as it came; *frame* are its bytes without the length."""

    name: str
    version: int
    message: Any
    frame: bytes


class ScriptedBroker:
    """Listens on loopback, and answers ApiVersions by itself. Keeps what it received.

    *script* is a :data:`Script`, or the one answer to all else. *features* are the finalised ones, with their levels.
    """

    def __init__(
        self,
        script: Script | bytes | ApiMessage | None,
        *,
        versions: Mapping[int, tuple[int, int]] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.received: list[Received] = []
        self._script = script
        self._versions = {**ALL_VERSIONS, **(versions or {})}
        self._features = features or {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._server.getsockname()[1]

    def named(self, name: str) -> list[Any]:
        """The messages of this kind that were received."""
        return [each.message for each in self.received if each.name == name]

    def disconnect(self) -> None:
        """Close every connection, and wait until all are; others may be made."""
        for each in self.connections:
            _shut(each)
        for each in self._threads[1:]:
            each.join(10)

    def stop(self) -> None:
        """Close every connection, and listen no more."""
        for each in (self._server, *self.connections):
            _shut(each)
        self._server.close()
        for each in self._threads:
            each.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._server.accept()
            except OSError:
                return
            self.connections.append(accepted)
            thread = threading.Thread(target=self._serve, args=(accepted,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (frame := _frame(connection)) is not None:
                    answer = self._answer(frame)
                    if answer is None:
                        return
                    connection.sendall(answer)
            except OSError:
                return

    def _answer(self, frame: bytes) -> bytes | None:
        key, version, number = struct.unpack_from(">hhi", frame)
        kind = _REQUESTS[key]
        length = max(0, struct.unpack_from(">h", frame, 8)[0])
        at = 10 + length + (1 if kind.flexible_version_q(version) else 0)
        message = kind.decode(frame[at:], version=version)
        received = Received(kind.name.removesuffix("Request"), version, message, frame)
        self.received.append(received)
        if key == ApiVersionsRequest.API_KEY:
            answer = self._api_versions()
        else:
            answer = self._script(received) if callable(self._script) else self._script
        if answer is None or isinstance(answer, bytes):
            return answer
        return framed(answer, version, number)

    def _api_versions(self) -> ApiVersionsResponse:
        versions = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=least, max_version=most)
            for key, (least, most) in self._versions.items()
        ]
        features = [
            ApiVersionsResponse.FinalizedFeatureKey(
                name=name, max_version_level=level, min_version_level=level
            )
            for name, level in self._features.items()
        ]
        return ApiVersionsResponse(
            error_code=0,
            api_keys=versions,
            throttle_time_ms=0,
            finalized_features_epoch=1,
            finalized_features=features,
        )


def framed(answer: Any, version: int, number: int) -> bytes:  # noqa: ANN401 (the library has no common type)
    """The bytes of *answer* as a broker sends them."""
    tags = b"\0" if answer.flexible_version_q(version) else b""
    tags = b"" if answer.API_KEY == ApiVersionsRequest.API_KEY else tags
    content = struct.pack(">i", number) + tags + bytes(answer.encode(version=version))
    return struct.pack(">i", len(content)) + content


def _frame(connection: socket.socket) -> bytes | None:
    length = _exactly(connection, 4)
    return length and _exactly(connection, struct.unpack(">i", length)[0])


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    content = bytearray(length)
    rest = memoryview(content)
    while rest:
        count = connection.recv_into(rest)
        if not count:
            return None
        rest = rest[count:]
    return bytes(content)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class ScriptedCluster:
    """Brokers that agree on metadata; tests change *leaders*, *ids* and *errors*, and say how requests are answered.

    *scripts* maps the name of a request to its answer, or to a function of the node and what it received that gives it; it
    is asked before the answers that are built in: metadata, the *coordinator*, log bounds from *bounds*, the ends of *epochs*, and
    record batches from *logs*, of as many partitions as *max_batches* allows. A code in *codes* is
    answered once instead of a partition's batches.
    """

    def __init__(
        self,
        *places: TopicPartition,
        nodes: int = 1,
        versions: Mapping[int, tuple[int, int]] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.leaders: dict[TopicPartition, int] = dict.fromkeys(places, 1)
        self.ids: dict[str, UUID] = {
            each.topic: UUID(int=number) for number, each in enumerate(places, start=1)
        }
        self.errors: dict[str, int] = {}
        self.bounds: dict[TopicPartition, tuple[int, int]] = {}
        self.epochs: dict[TopicPartition, tuple[int, int]] = {}
        self.logs: dict[TopicPartition, list[tuple[int, int, bytes]]] = {}
        self.codes: dict[TopicPartition, list[int]] = {}
        self.max_batches = 100
        self.scripts: dict[str, Any] = {}
        self.coordinator = 1
        self.brokers = {
            node: ScriptedBroker(self._scripted(node), versions=versions, features=features)
            for node in range(1, nodes + 1)
        }

    def cluster(self, **settings: Any) -> Cluster:  # noqa: ANN401
        """A client of these brokers, which begins at the first one."""
        addresses = (self.brokers[1].address,)
        return Cluster(WireSettings(addresses=addresses, client_id="test", **settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for each in self.brokers.values():
            each.stop()

    def _scripted(self, node: int) -> Script:
        def script(received: Received) -> Any:  # noqa: ANN401
            if received.name in self.scripts:
                own = self.scripts[received.name]
                return own(node, received) if callable(own) else own
            built_in = {
                "Metadata": self.metadata,
                "ListOffsets": self.list_offsets,
                "OffsetForLeaderEpoch": self.epoch_ends,
                "Fetch": self.fetch,
                "FindCoordinator": self.find_coordinator,
            }
            return built_in[received.name](node, received)

        return script

    def append(self, place: TopicPartition, base_offset: int, count: int = 1) -> bytes:
        """A record batch at the end of a log."""
        batch = record_batch(base_offset, count)
        self.logs.setdefault(place, []).append((base_offset, base_offset + count, batch))
        return batch

    def fetch(self, node: int, received: Received) -> FetchResponse:
        """What the logs hold from the asked offsets on; NOT_LEADER_OR_FOLLOWER for partitions of other nodes."""
        kind = FetchResponse.FetchableTopicResponse
        left, topics = self.max_batches, []
        for topic in received.message.topics:
            name = self._name(topic, received.version)
            partitions = []
            for each in topic.partitions:
                place = TopicPartition(name, each.partition)
                code = self._fetch_code(place, node)
                batches = [] if code else self._after(place, each.fetch_offset)[:left]
                left -= len(batches)
                end = max((one[1] for one in self.logs.get(place, ())), default=0)
                partitions.append(
                    kind.PartitionData(
                        partition_index=each.partition,
                        error_code=code,
                        high_watermark=end,
                        last_stable_offset=end,
                        log_start_offset=0,
                        aborted_transactions=[],
                        preferred_read_replica=-1,
                        records=b"".join(batches),
                    )
                )
            topics.append(kind(topic=name, topic_id=topic.topic_id, partitions=partitions))
        if left == self.max_batches:
            # As a broker that has nothing new: it answers later.
            time.sleep(min(received.message.max_wait_ms, 10) / 1000)
        return FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=topics)

    def _name(self, topic: Any, version: int) -> str:  # noqa: ANN401
        if version < 13:
            return topic.topic
        return next((name for name, each in self.ids.items() if each == topic.topic_id), "")

    def _fetch_code(self, place: TopicPartition, node: int) -> int:
        if (codes := self.codes.get(place)) is not None and codes:
            return codes.pop(0)
        if not place.topic:
            return 100
        return 0 if self.leaders.get(place) == node else 6

    def _after(self, place: TopicPartition, offset: int) -> list[bytes]:
        return [batch for _, end, batch in self.logs.get(place, ()) if end > offset]

    def metadata(self, node: int, received: Received) -> MetadataResponse:
        """What all brokers answer."""
        asked = received.message.topics
        names = sorted(self.ids) if asked is None else [each.name for each in asked]
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=number, host=each.address[0], port=each.address[1], rack=None
                )
                for number, each in self.brokers.items()
            ],
            cluster_id="scripted",
            controller_id=1,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> Any:  # noqa: ANN401
        kind = MetadataResponse.MetadataResponseTopic
        code = self.errors.get(name, 0 if name in self.ids else 3)
        return kind(
            error_code=code,
            name=name,
            topic_id=self.ids.get(name, UUID(int=0)),
            is_internal=name.startswith("__"),
            partitions=[
                kind.MetadataResponsePartition(
                    error_code=5 if leader < 0 else 0,
                    partition_index=place.partition,
                    leader_id=leader,
                    leader_epoch=7,
                    replica_nodes=[1],
                    isr_nodes=[1],
                    offline_replicas=[],
                )
                for place, leader in self.leaders.items()
                if place.topic == name and code == 0
            ],
        )

    def find_coordinator(self, node: int, received: Received) -> FindCoordinatorResponse:
        """The broker *coordinator*."""
        host, port = self.brokers[self.coordinator].address
        return FindCoordinatorResponse(
            throttle_time_ms=0, error_code=0, node_id=self.coordinator, host=host, port=port
        )

    def list_offsets(self, node: int, received: Received) -> ListOffsetsResponse:
        """The bounds of the partitions that *node* leads; NOT_LEADER_OR_FOLLOWER for the others."""
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for topic in received.message.topics:
            partitions = []
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                begin, end = self.bounds.get(place, (0, 0))
                is_ours = self.leaders.get(place) == node
                partitions.append(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=0 if is_ours else 6,
                        timestamp=-1,
                        offset=(end if each.timestamp == -1 else begin) if is_ours else -1,
                        leader_epoch=7,
                    )
                )
            topics.append(kind(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)

    def epoch_ends(self, node: int, received: Received) -> OffsetForLeaderEpochResponse:
        """What *epochs* has for the partitions that *node* leads; NOT_LEADER_OR_FOLLOWER for the others."""
        kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        topics = []
        for topic in received.message.topics:
            partitions = []
            for each in topic.partitions:
                place = TopicPartition(topic.topic, each.partition)
                epoch, end = self.epochs.get(place, (-1, -1))
                is_ours = self.leaders.get(place) == node
                partitions.append(
                    kind.EpochEndOffset(
                        error_code=0 if is_ours else 6,
                        partition=each.partition,
                        leader_epoch=epoch,
                        end_offset=end,
                    )
                )
            topics.append(kind(topic=topic.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


def record_batch(base_offset: int, count: int = 1, *, filler: int = 40) -> bytes:
    """A record batch whose header is right, of *count* offsets; what follows the header means nothing."""
    rest = struct.pack(">hiqqqhii", 0, count - 1, 0, 0, -1, -1, -1, count) + bytes(filler)
    begin = struct.pack(">qiibI", base_offset, 9 + len(rest), 0, 2, 0)
    return begin + rest
