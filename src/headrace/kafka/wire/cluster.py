"""What a reader asks a cluster: topics and leaders, offsets of logs, and offsets of groups."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.protocol.metadata.api_versions import ApiVersionsRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata.metadata import MetadataRequest

from headrace import __version__
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.deadline import Deadline, Reminder
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire import error_codes, group_requests
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    Message,
    UnsupportedApiError,
    Versions,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.error_codes import ErrorCode, Reaction, error_code
from headrace.kafka.wire.group_requests import GroupDescription, ListedGroup, by_topic
from headrace.kafka.wire.settings import WireSettings

_log = logging.getLogger(__name__)

EARLIEST: Final = -2
"""Instead of a timestamp: the log's start."""
LATEST: Final = -1
"""Instead of a timestamp: the log's end, as far as the isolation level lets one read."""
EARLIEST_LOCAL: Final = -4
"""Instead of a timestamp: the start of what is not on remote storage (KIP-405); with brokers that have none, the log's."""

# Versions of the requests. Metadata does not create topics since version 4 (Kafka 0.11). A coordinator is looked up alone.
_METADATA_VERSIONS: Final = (4, 12)
_OFFSETS_VERSIONS: Final = (2, 8)
# Before it, EARLIEST_LOCAL would be taken for a timestamp.
_LOCAL_START_VERSION: Final = 8
_COORDINATOR_VERSIONS: Final = (1, 3)
# Features came with version 3 (Kafka 2.4).
_FEATURES_VERSIONS: Final = (3, 4)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# Whoever has spelt an address wrong should not have to wait for the deadline to see it.
_SILENT_SECONDS: Final = 5.0
_REPORT_SECONDS: Final = 1.0
# Brokers usually know of a change within a tenth of it.
_BEFORE_ASKING_AGAIN: Final = 0.5
# The system sends its first packet again after one and after three seconds.
_LEADER_CONNECT_SECONDS: Final = 4.0
_GROUP: Final = 0
_GROUPS_AT_ONCE: Final = 50
_Address = tuple[str, int]
_Answer = TypeVar("_Answer")
_Found = TypeVar("_Found")


class IsolationLevel(IntEnum):
    """Which records of transactions a reader sees (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class PartitionMetadata(NamedTuple):
    """A partition as the brokers know it; *leader* is a node id, or ``None`` while there is no leader."""

    partition: int
    leader: int | None
    leader_epoch: int
    error: ErrorCode | None


class TopicMetadata(NamedTuple):
    """A topic as the brokers know it.

    *topic_id* is ``None`` with brokers that have none (before Kafka 2.8). With an *error*, such as
    UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED, there may be no partitions.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    error: ErrorCode | None
    partitions: Mapping[int, PartitionMetadata]


class ClusterMetadata(NamedTuple):
    """One answer; *brokers* are host and port by node id."""

    cluster_id: str | None
    brokers: Mapping[int, tuple[str, int]]
    topics: Mapping[str, TopicMetadata]


class ListedOffset(NamedTuple):
    """An offset of a log, or the *error* because of which there is none.

    *offset* is ``None`` with an error, and when no record is as late as the timestamp that was asked for.
    *timestamp* is that of the record at the offset, -1 for :data:`EARLIEST` and :data:`LATEST`.
    """

    offset: int | None
    timestamp: int = -1
    leader_epoch: int = -1
    error: ErrorCode | None = None


class Cluster:
    """Sends a reader's requests to the right brokers. One thread uses it; nothing is connected before the first call.

    Each call retries with back-off until its deadline whatever a retry can resolve: lost connections, leaders and
    coordinators that have moved, brokers that start. Then it raises
    :class:`~headrace.connect.errors.RetriableError` if a broker did not answer. It raises
    :class:`~headrace.connect.errors.TaskFailedError` at once for what no retry can resolve, such as a wrong password.
    No request creates a topic.
    """

    def __init__(self, settings: WireSettings) -> None:
        self._settings = settings
        self._connections: dict[_Address, WireConnection] = {}
        self._cluster_id: str | None = None
        self._brokers: Mapping[int, _Address] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._coordinators: dict[str, _Address] = {}
        self._answered_last: _Address | None = None
        # Since when each question has no answer.
        self._silent_since: dict[str, float] = {}
        self._silence = Reminder()

    @property
    def settings(self) -> WireSettings:
        """How this cluster is reached."""
        return self._settings

    @property
    def known(self) -> ClusterMetadata:
        """What was last answered of each topic, without another request."""
        return ClusterMetadata(self._cluster_id, self._brokers, self._topics)

    def metadata(
        self, topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        """Metadata of *topics* (``None``: of all that this client may see).

        A topic that the brokers do not know is in the answer with its error; it is not waited for. *again* is for whoever
        doubts the last answer: after a pause, another broker is asked if there is one.
        """
        if again:
            time.sleep(deadline.remaining(_BEFORE_ASKING_AGAIN))
        return self.retried(
            "the metadata of its topics",
            deadline,
            lambda: self._asked_metadata(topics, deadline, again=again),
        )

    def failure(self, deadline: Deadline) -> ConnectError | None:
        """Why no broker answers this client, asked once; ``None`` if one does.

        It is the error that :meth:`metadata` would raise: a ``TaskFailedError`` if no retry can resolve it, otherwise a
        ``RetriableError``.
        """
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        try:
            self.attempt_any(request, deadline, versions=_METADATA_VERSIONS)
        except _UNANSWERED as error:
            final = unresolvable(error, "a connection", self._settings)
            return final or RetriableError(f"{error or type(error).__name__}.")
        return None

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        deadline: Deadline,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, ListedOffset]:
        """One offset for each partition in *wanted*: :data:`EARLIEST`, :data:`LATEST`, or a timestamp in milliseconds.

        A timestamp asks for the first record that is at least as late. With read_committed the latest offset is the
        last stable offset. One request for each leader. A partition without a leader, or of a topic that does not
        exist, is answered with that error and not waited for. A leader that does not answer is waited for until half of
        the time is over, and then its partitions are LEADER_NOT_AVAILABLE; where no other leader has answered, until the
        deadline, and then the call raises. A retriable error that a leader still gives at the deadline is answered, too.
        """
        query = LeaderQuery(
            wanted,
            ListOffsetsRequest,
            _OFFSETS_VERSIONS,
            request=partial(_offsets_request, wanted, isolation),
            parts=_listed_offsets,
        )
        self.ask_leaders(query, "the offsets of its partitions", deadline)
        failed = {**query.refused, **query.unanswered()}
        errors = {place: ListedOffset(None, error=error) for place, error in failed.items()}
        return {**query.found, **errors}

    def ask_leaders(
        self,
        query: LeaderQuery[_Found],
        doing: str,
        deadline: Deadline,
        *,
        is_optional: bool = False,
    ) -> None:
        """Have *query* answered; *doing* completes "Kafka did not answer …".

        A leader that does not answer is waited for until half of the time is over; where no other one has answered, until
        the deadline, and then this raises ``RetriableError``. With *is_optional*, brokers that have no such request refuse it
        with UNSUPPORTED_VERSION; otherwise that raises ``TaskFailedError``.
        """
        # What is known of the others holds until a leader contradicts it.
        query.stale = {place.topic for place in query.left if self._leader(place).error is not None}
        attempt = partial(self._ask_what_is_left, query, is_optional=is_optional)
        for until in (Deadline.after(deadline.remaining() / 2, deadline.clock), deadline):
            try:
                self.retried(doing, until, partial(attempt, until))
            except RetriableError:
                is_away = not query.left.keys() <= query.errors.keys()
                if is_away and query.found:
                    break
                if is_away and until is deadline:
                    raise
            else:
                break

    def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, int | None]:
        """The offset that *group* has committed for each of *partitions*, ``None`` where it has none.

        An offset in an open transaction is waited for.
        """
        return {
            place: None if entry is None else entry.offset
            for place, entry in self._committed(group, partitions, deadline).items()
        }

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], deadline: Deadline
    ) -> None:
        """Commit *offsets* for *group*, which has no members, for tools that show a reader's lag."""
        entries = [GroupEntry(*place, offset) for place, offset in offsets.items()]
        self.commit_entries(group, entries, deadline)

    def committed_entries(
        self,
        group: str,
        topics: Collection[str] | None,
        deadline: Deadline,
        *,
        also: Collection[str] = (),
    ) -> list[GroupEntry]:
        """What *group* has committed for all partitions of *topics*, or for all topics, sorted.

        An offset in an open transaction is waited for. Without *topics* one is not seen that is the first of its topic:
        the broker does not name a partition for which nothing is committed yet, so only those of topics that it has named,
        and of those that it *also* has to look at, are asked for one by one. Topics that do not exist have no entries.
        """
        found = dict[TopicPartition, GroupEntry | None]()
        if topics is None:
            found = self._committed(group, None, deadline)
            topics = {*also, *(each.topic for each in found)}
        if topics:
            known = self.metadata(topics, deadline).topics.values()
            places = {
                TopicPartition(each.name, number) for each in known for number in each.partitions
            }
            found |= self._committed(group, places - found.keys(), deadline)
        return sorted(each for each in found.values() if each is not None)

    def commit_entries(self, group: str, entries: Sequence[GroupEntry], deadline: Deadline) -> None:
        """Commit *entries* for *group*, which has no members: all of them, if they fit into one request, or each portion."""
        doing = f"the commit of offsets to the group {group!r}"
        for portion in group_requests.portions(entries):
            request = group_requests.commit_request(group, portion)
            self._coordinated(
                group, request, doing, deadline, versions=group_requests.COMMIT_VERSIONS
            )

    def delete_offsets(
        self, group: str, places: Collection[TopicPartition], deadline: Deadline
    ) -> None:
        """Remove what *group* has committed for *places*; a place or a group that is not there is removed already.

        Raises :class:`~headrace.connect.errors.TaskFailedError` while the group has members.
        """
        request = group_requests.delete_request(group, places)
        doing = f"the removal of offsets from the group {group!r}"
        if places:
            self._coordinated(
                group,
                request,
                doing,
                deadline,
                versions=group_requests.DELETE_VERSIONS,
                tolerated=_NOTHING_TO_REMOVE,
            )

    def describe_group(self, group: str, deadline: Deadline) -> GroupDescription:
        """The state and the members of *group*, whichever protocol they use (KIP-848)."""
        doing = f"a description of the group {group!r}"
        classic = self._coordinated(
            group,
            group_requests.describe_request(group),
            doing,
            deadline,
            versions=group_requests.DESCRIBE_VERSIONS,
        )
        found = group_requests.described(classic)
        if found.state != group_requests.DEAD:
            return found

        def attempt() -> Message:
            request = group_requests.describe_newer_request(group)
            versions = group_requests.DESCRIBE_NEWER_VERSIONS
            try:
                return self._at_coordinator(
                    group, request, deadline, versions=versions, tolerated=_NO_SUCH_GROUP
                )
            except UnsupportedApiError:
                return None

        newer = self.retried(doing, deadline, attempt)
        named = found if newer is None else group_requests.described(newer)
        return named if named.state else found

    def list_groups(self, deadline: Deadline) -> list[ListedGroup]:
        """All groups that this client may see, of every kind; each broker is asked for its own."""

        def attempt() -> list[ListedGroup]:
            self._asked_metadata((), deadline)
            found = dict[str, ListedGroup]()
            for address in list(self._brokers.values()):
                answer = self.attempt_at(
                    address,
                    group_requests.list_request(),
                    deadline,
                    versions=group_requests.LIST_VERSIONS,
                )
                _raise_error_in(answer)
                for each in group_requests.listed(answer):
                    found[each.group_id] = each
                    self._coordinators[each.group_id] = address
            return sorted(found.values())

        return self.retried("a list of its groups", deadline, attempt)

    def committed_by_groups(
        self, groups: Collection[str], deadline: Deadline
    ) -> dict[str, list[GroupEntry]]:
        """What each of *groups* has committed by now, sorted; what is in open transactions is not waited for.

        A group that does not exist has committed nothing. Many groups are asked for at once where brokers can do that; it is
        quickest after :meth:`list_groups`, which says who coordinates them.
        """
        found = dict[str, list[GroupEntry]]()

        def attempt() -> None:
            while left := sorted(set(groups) - found.keys()):
                asked = self._together(left, deadline)
                try:
                    answer = self.attempt_at(
                        self._coordinators[asked[0]],
                        group_requests.several_request(asked),
                        deadline,
                        versions=group_requests.FETCH_VERSIONS,
                    )
                    _raise_error_in(answer)
                except (OSError, _RefusedError):
                    for each in asked:
                        self._coordinators.pop(each, None)
                    raise
                found.update(group_requests.entries_by_group(answer, asked[0]))

        self.retried("the committed offsets of groups", deadline, attempt)
        return found

    def features(self, deadline: Deadline) -> dict[str, int]:
        """The finalised level of each feature of the cluster (KIP-584), such as that of ``transaction.version``.

        Empty with brokers that have none.
        """

        def attempt() -> dict[str, int]:
            try:
                answer = self.attempt_any(request, deadline, versions=_FEATURES_VERSIONS)
            except UnsupportedApiError:
                return {}
            _raise_error_in(answer)
            found = answer.finalized_features or ()
            return {each.name: each.max_version_level for each in found}

        request = ApiVersionsRequest(
            client_software_name="headrace", client_software_version=__version__
        )
        return self.retried("its features", deadline, attempt)

    def ask_any(
        self, request: Message, doing: str, deadline: Deadline, *, versions: Versions
    ) -> Message:
        """The answer of any broker to *request*, whatever error it has; the request may reach several brokers.

        *doing* completes "Kafka did not answer …".
        """
        return self.retried(
            doing, deadline, lambda: self.attempt_any(request, deadline, versions=versions)
        )

    def connect(self, node: int, deadline: Deadline) -> WireConnection:
        """A new connection to the broker with the id *node*, which is the caller's to close.

        One that does not answer at all is given up sooner than elsewhere: the caller has others to serve.
        Raises ``OSError`` when it is not reached; then ask for metadata again.
        """
        if node not in self._brokers:
            raise ConnectionError(f"the cluster has no broker {node} now")
        return self.connect_to(self._brokers[node], deadline)

    def connect_to(self, address: tuple[str, int], deadline: Deadline) -> WireConnection:
        """As ``connect``, to a broker that is known by its host and port."""
        seconds = min(self._settings.connect_seconds, _LEADER_CONNECT_SECONDS)
        settings = replace(self._settings, connect_seconds=seconds)
        return WireConnection(*address, settings, deadline)

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        for each in self._connections.values():
            each.close()
        self._connections.clear()

    def retried(
        self,
        doing: str,
        deadline: Deadline,
        attempt: Callable[[], _Answer],
        *,
        waiting: Callable[[str], None] | None = None,
    ) -> _Answer:
        """What *attempt* returns; retried while that can help, or when it raises ``RetriableError``.

        *doing* completes "Kafka did not answer …". *waiting* is called with it about once a second, and may end the wait;
        without it a long wait is logged: once, and again after ten minutes, until each of this client's questions is answered.
        """
        pause, report_at = _FIRST_PAUSE, deadline.clock() + _REPORT_SECONDS
        began, is_long = deadline.clock(), False
        while True:
            try:
                answer = attempt()
                self._end_silence(doing)
                return answer
            except _UNANSWERED as error:
                reason = self._retry_reason(error, doing)
            except ConnectError:
                self._end_silence(doing)
                raise
            since = self._silent_since.setdefault(doing, began)
            if deadline.expired:
                raise RetriableError(f"Kafka did not answer {doing} in time: {reason}.")
            if waiting is None and not is_long and deadline.clock() - began >= _SILENT_SECONDS:
                is_long = True
                self._log_silence(doing, since, reason, deadline)
            if waiting is not None and deadline.clock() >= report_at:
                waiting(doing)
                report_at = deadline.clock() + _REPORT_SECONDS
            time.sleep(deadline.remaining(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _retry_reason(self, error: Exception, doing: str) -> str:
        """Why another attempt can help after *error*; raises where none can."""
        if isinstance(error, RetriableError):
            return str(error).rstrip(".")
        if isinstance(error, _RefusedError):
            refused = f"{error.where}{error.error.name}"
            if error.error.reaction is not Reaction.FAIL:
                return refused
            final = TaskFailedError(
                f"Kafka refused {doing}: {refused}. {error.error.advice}".strip()
            )
        else:
            final = unresolvable(error, doing, self._settings)
        if final is None:
            return str(error) or type(error).__name__
        self._end_silence(doing)
        raise final from error

    def _log_silence(self, doing: str, since: float, reason: str, deadline: Deadline) -> None:
        now = deadline.clock()
        _log.log(
            logging.WARNING if self._silence.is_due(now) else logging.DEBUG,
            "Kafka has not answered %s for %.0f s, and is asked again for up to %.0f s: %s.",
            doing,
            now - since,
            deadline.remaining(),
            reason,
        )

    def _end_silence(self, doing: str) -> None:
        if self._silent_since.pop(doing, None) is not None and not self._silent_since:
            self._silence.reset()

    def _asked_metadata(
        self, topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        names = None if topics is None else sorted(set(topics))
        request = MetadataRequest(
            topics=None
            if names is None
            else [MetadataRequest.MetadataRequestTopic(name=each) for each in names],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        avoided = self._answered_last if again else None
        answer = self.attempt_any(request, deadline, versions=_METADATA_VERSIONS, avoided=avoided)
        self._cluster_id = answer.cluster_id
        self._brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
        found = {each.name: _topic_metadata(each) for each in answer.topics}
        if names is None:
            self._topics.clear()
        self._topics.update(found)
        return ClusterMetadata(answer.cluster_id, self._brokers, found)

    def _ask_what_is_left(
        self, query: LeaderQuery[_Found], deadline: Deadline, *, is_optional: bool
    ) -> None:
        """Ask every leader for what is left, each one before the first answer is waited for; raises when some is left."""
        if query.stale:
            self._asked_metadata(query.stale, deadline)
            query.stale.clear()
        by_leader = defaultdict[int, dict[TopicPartition, int]](dict)
        for place in list(query.left):
            leader = self._leader(place)
            if leader.error is not None:
                query.refuse(place, leader.error)
            else:
                by_leader[leader.node][place] = leader.epoch
        query.waiting.clear()
        answers, failure = self._leaders_answers(
            query, by_leader, deadline, is_optional=is_optional
        )
        for answer in answers:
            query.take(answer)
        query.stale = {place.topic for place in query.left if place not in query.waiting}
        if failure is not None:
            raise failure
        for place in query.left:
            raise _RefusedError(query.errors.get(place, error_codes.UNKNOWN), str(place))

    def _leader(self, place: TopicPartition) -> _Leader:
        topic = self._topics.get(place.topic)
        found = topic and topic.partitions.get(place.partition)
        if not found:
            unknown = error_codes.UNKNOWN_TOPIC_OR_PARTITION
            return _Leader(error=(topic and topic.error) or unknown)
        if found.leader is None or found.leader not in self._brokers:
            return _Leader(error=error_codes.LEADER_NOT_AVAILABLE)
        return _Leader(found.leader, found.leader_epoch)

    def _committed(
        self, group: str, places: Collection[TopicPartition] | None, deadline: Deadline
    ) -> dict[TopicPartition, GroupEntry | None]:
        """The entries of *places*, or all; those in an open transaction are asked for again until it has ended."""
        found: dict[TopicPartition, GroupEntry | None] = dict.fromkeys(places or ())
        left: Collection[TopicPartition] | None = places

        def attempt() -> None:
            nonlocal left
            request = group_requests.fetch_request(group, left)
            answer = self._at_coordinator(
                group,
                request,
                deadline,
                versions=group_requests.FETCH_VERSIONS,
                tolerated=_UNSTABLE,
            )
            open_ones = set[TopicPartition]()
            for place, part in group_requests.parts(answer):
                if part.error_code:
                    open_ones.add(place)
                else:
                    found[place] = group_requests.entry_of(place, part)
            left = open_ones
            if open_ones:
                raise _RefusedError(error_codes.UNSTABLE_OFFSET_COMMIT, str(min(open_ones)))

        if places is None or places:
            self.retried(f"the committed offsets of the group {group!r}", deadline, attempt)
        return found

    def _coordinated(
        self,
        group: str,
        request: Message,
        doing: str,
        deadline: Deadline,
        *,
        versions: Versions,
        tolerated: _Tolerated | None = None,
    ) -> Message:
        """As :meth:`_at_coordinator`, retried while that can help."""
        return self.retried(
            doing,
            deadline,
            partial(
                self._at_coordinator,
                group,
                request,
                deadline,
                versions=versions,
                tolerated=tolerated,
            ),
        )

    def _at_coordinator(
        self,
        group: str,
        request: Message,
        deadline: Deadline,
        *,
        versions: Versions,
        tolerated: _Tolerated | None = None,
    ) -> Message:
        """The answer of the group's coordinator to *request*; no error in it but those that are *tolerated*."""
        try:
            address = self._coordinator(group, deadline)
            answer = self.attempt_at(address, request, deadline, versions=versions)
            _raise_error_in(answer, tolerated)
        except OSError:
            self._coordinators.pop(group, None)
            raise
        except _RefusedError as refused:
            if refused.error.reaction is not Reaction.RETRY:
                self._coordinators.pop(group, None)
            raise
        return answer

    def _together(self, groups: Sequence[str], deadline: Deadline) -> list[str]:
        """The first of *groups*, and others that its coordinator can be asked for in the same request."""
        address = self._coordinator(groups[0], deadline)
        connection = self._connected(address, self._share(deadline))
        version = connection.version(OffsetFetchRequest, group_requests.FETCH_VERSIONS)
        if version < group_requests.SEVERAL_VERSION:
            return [groups[0]]
        its = (each for each in groups if self._coordinators.get(each) == address)
        return list(islice(its, _GROUPS_AT_ONCE))

    def _coordinator(self, group: str, deadline: Deadline) -> _Address:
        if group not in self._coordinators:
            request = FindCoordinatorRequest(key=group, key_type=_GROUP)
            answer = self.attempt_any(request, deadline, versions=_COORDINATOR_VERSIONS)
            _raise_error_in(answer)
            self._coordinators[group] = answer.host, answer.port
        return self._coordinators[group]

    def attempt_any(
        self,
        request: Message,
        deadline: Deadline,
        *,
        versions: Versions,
        avoided: _Address | None = None,
    ) -> Message:
        """The answer of the first broker that gives one: those that are connected, then known ones, then the configured.

        The one that is *avoided* is asked last. Not retried: what a connection raises is for :meth:`retried` to judge.
        """
        settings = self._settings
        known = dict.fromkeys((*self._connections, *self._brokers.values(), *settings.addresses))
        addresses = sorted(known, key=lambda address: address == avoided)
        failure: Exception = ConnectionError("there are no addresses (bootstrap.servers)")
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = Deadline.after(deadline.remaining() / left, deadline.clock)
            try:
                answer = self.attempt_at(address, request, share, versions=versions)
            except (OSError, LoginRefusedError, AnswerTooLargeError) as error:
                if unresolvable(error, "", settings) is not None:
                    raise
                failure = error
            else:
                self._answered_last = address
                return answer
        raise failure

    def _leaders_answers(
        self,
        query: LeaderQuery[_Found],
        by_leader: Mapping[int, Mapping[TopicPartition, int]],
        deadline: Deadline,
        *,
        is_optional: bool,
    ) -> tuple[list[Message], Exception | None]:
        """The answers of leaders about their partitions, all in flight together, and a failure if there was one."""
        share = self._share(deadline)
        asked: list[_Address] = []
        answers: list[Message] = []
        failure: Exception | None = None
        try:
            for node, places in by_leader.items():
                address = self._brokers[node]
                try:
                    connection = self._connected(address, share)
                    query.send(connection, places, share)
                    asked.append(address)
                except UnsupportedApiError:
                    if not is_optional:
                        raise
                    for place in places:
                        query.refuse(place, error_codes.UNSUPPORTED_VERSION)
                except (OSError, LoginRefusedError, AnswerTooLargeError) as error:
                    self._drop(address)
                    failure = error
            for address in asked:
                try:
                    answers.append(self._connections[address].next_answer(share).decoded())
                except (OSError, AnswerTooLargeError) as error:
                    self._drop(address)
                    failure = error
        except BaseException:
            # An answer that no one waits for would be taken for that to the next request.
            for address in asked:
                self._drop(address)
            raise
        return answers, failure

    def attempt_at(
        self, address: tuple[str, int], request: Message, deadline: Deadline, *, versions: Versions
    ) -> Message:
        """The answer of the broker at *address*; not retried, as :meth:`attempt_any`."""
        share = self._share(deadline)
        try:
            return self._connected(address, share).ask(request, share, versions=versions)
        except UnsupportedApiError:
            raise
        except BaseException:
            self._drop(address)
            raise

    def _share(self, deadline: Deadline) -> Deadline:
        """The time for one request; a broker that hangs is given up before the whole time is spent."""
        seconds = deadline.remaining(self._settings.request_seconds)
        return Deadline.after(seconds, deadline.clock)

    def _connected(self, address: _Address, deadline: Deadline) -> WireConnection:
        if address not in self._connections:
            self._connections[address] = WireConnection(*address, self._settings, deadline)
        return self._connections[address]

    def _drop(self, address: _Address) -> None:
        if (dropped := self._connections.pop(address, None)) is not None:
            dropped.abort()


class _RefusedError(Exception):
    """An answer with an error code; *where* is the topic or partition, or empty."""

    def __init__(self, error: ErrorCode, where: str = "") -> None:
        self.error = error
        self.where = f"{where}: " if where else ""
        super().__init__(error.name)


class _Leader(NamedTuple):
    """Node id and epoch of a leader, or the error because of which there is none."""

    node: int = -1
    epoch: int = -1
    error: ErrorCode | None = None


class LeaderQuery(Generic[_Found]):
    """What is still to be asked of the leaders of partitions, and what they have answered.

    *request* makes the one of class *kind* for some of the partitions, which come with the epoch of their leader, in one of
    *versions*. *parts* are the partitions of an answer, each with its error code and what was found.
    """

    def __init__(
        self,
        wanted: Collection[TopicPartition],
        kind: Message,
        versions: Versions,
        *,
        request: Callable[[Mapping[TopicPartition, int], int], Message],
        parts: Callable[[Message], Iterable[tuple[TopicPartition, int, _Found]]],
    ) -> None:
        self.left = dict.fromkeys(wanted)
        self.found: dict[TopicPartition, _Found] = {}
        self.refused: dict[TopicPartition, ErrorCode] = {}
        """Those without a leader, and those whose leader gave an error that no retry can resolve."""
        self.errors: dict[TopicPartition, ErrorCode] = {}
        """The last errors that may pass."""
        self.waiting = set[TopicPartition]()
        """What its leader, which is the right one, answers later."""
        self.stale = set[str]()
        """Topics to ask for metadata of first."""
        self._kind = kind
        self._versions = versions
        self._request = request
        self._parts = parts

    def send(
        self, connection: WireConnection, places: Mapping[TopicPartition, int], deadline: Deadline
    ) -> None:
        """Ask the leader of *places*, which come with its epoch, and do not wait."""
        version = connection.version(self._kind, self._versions)
        connection.send(self._request(places, version), deadline, versions=self._versions)

    def take(self, answer: Message) -> None:
        """Take what is settled from a leader's *answer*; what a retry may resolve is left."""
        for place, code, found in self._parts(answer):
            error = error_code(code)
            if error is None:
                self.left.pop(place, None)
                self.found[place] = found
            elif error.reaction is Reaction.FAIL:
                self.refuse(place, error)
            else:
                self.errors[place] = error
                if error.reaction is Reaction.RETRY:
                    self.waiting.add(place)

    def refuse(self, place: TopicPartition, error: ErrorCode) -> None:
        """*place* is answered with *error*."""
        self.left.pop(place, None)
        self.refused[place] = error

    def unanswered(self) -> dict[TopicPartition, ErrorCode]:
        """What is left, with the last error that its leader gave, if it gave one."""
        away = error_codes.LEADER_NOT_AVAILABLE
        return {place: self.errors.get(place, away) for place in self.left}


def _offsets_request(
    wanted: Mapping[TopicPartition, int],
    isolation: IsolationLevel,
    places: Mapping[TopicPartition, int],
    version: int,
) -> ListOffsetsRequest:
    # A broker that does not know the word has no remote storage either.
    replaced = {EARLIEST_LOCAL: EARLIEST} if version < _LOCAL_START_VERSION else {}
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    partition_class = topic_class.ListOffsetsPartition
    topics = [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=each.partition,
                    current_leader_epoch=places[each],
                    timestamp=replaced.get(wanted[each], wanted[each]),
                )
                for each in parts
            ],
        )
        for topic, parts in by_topic(places).items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(isolation), topics=topics)


def _listed_offsets(answer: Message) -> Iterator[tuple[TopicPartition, int, ListedOffset]]:
    for topic in answer.topics:
        for each in topic.partitions:
            offset = each.offset if each.offset >= 0 else None
            listed = ListedOffset(offset, each.timestamp, each.leader_epoch)
            yield TopicPartition(topic.name, each.partition_index), each.error_code, listed


def _topic_metadata(answer: Message) -> TopicMetadata:
    return TopicMetadata(
        answer.name,
        answer.topic_id,
        answer.is_internal,
        error_code(answer.error_code),
        {
            each.partition_index: PartitionMetadata(
                each.partition_index,
                each.leader_id if each.leader_id >= 0 else None,
                each.leader_epoch,
                error_code(each.error_code),
            )
            for each in answer.partitions
        },
    )


class _Tolerated(NamedTuple):
    """Codes that are no errors to the caller: of the *whole* answer or a group in it, and of a partition."""

    whole: tuple[int, ...] = ()
    partition: tuple[int, ...] = ()


# What a retry can resolve, or what says itself that none can.
_UNANSWERED: Final = (
    _RefusedError,
    RetriableError,
    OSError,
    LoginRefusedError,
    AnswerTooLargeError,
    UnsupportedApiError,
)
# What belongs to no topic, or to no group, is removed already.
_NOTHING_TO_REMOVE: Final = _Tolerated(
    whole=(error_codes.GROUP_ID_NOT_FOUND.code,),
    partition=(error_codes.UNKNOWN_TOPIC_OR_PARTITION.code,),
)
# A broker may not have the newer protocol turned on.
_NO_SUCH_GROUP: Final = _Tolerated(
    whole=(error_codes.GROUP_ID_NOT_FOUND.code, error_codes.UNSUPPORTED_VERSION.code)
)
_UNSTABLE: Final = _Tolerated(partition=(error_codes.UNSTABLE_OFFSET_COMMIT.code,))


def _raise_error_in(answer: Message, tolerated: _Tolerated | None = None) -> None:
    whole, partition = tolerated or _Tolerated()
    for level in group_requests.levels(answer):
        code = getattr(level, "error_code", None) or error_codes.NONE
        if code not in whole and (error := error_code(code)) is not None:
            raise _RefusedError(error)
    for place, part in group_requests.parts(answer):
        if part.error_code not in partition and (error := error_code(part.error_code)) is not None:
            raise _RefusedError(error, str(place))
