"""Configurations, statuses, active topics and changes of offsets in Kafka's topics, shared by the workers of a group."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.topic_writer import TopicRecords, TopicWriter
from headrace.observe.log_format import in_log_context
from headrace.storage.changes_topic import (
    ChangeState,
    ChangesTopic,
    change_entries,
    deletion_entry,
    state_entry,
)
from headrace.storage.config_topic import (
    ConfigTopic,
    connector_entry,
    logger_entry,
    session_key_entry,
    target_state_entry,
    task_count_entry,
    task_entries,
)
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Phase,
    Retention,
    SessionKey,
    Status,
    StoredConnector,
    TaskCount,
)
from headrace.storage.status_topic import (
    StatusTopic,
    may_replace,
    removed_topic_entry,
    status_entry,
    topic_entry,
)
from headrace.storage.topic_records import UnreadableRecordError

ApplyRecord: TypeAlias = Callable[[bytes | None, bytes | None], None]
"""Takes in the key and the value of a topic's next record."""

_LOG = logging.getLogger(__name__)
WRITE_SECONDS: Final = 30.0
"""What Kafka Connect gives a write and its reading back."""
STATUS_SECONDS: Final = 5.0
"""How long Kafka may take to store statuses; at the end of a worker, no longer is waited for them."""
_RETRY_SECONDS: Final = 1.0


class SharedTopics:
    """Compacted topics to which others write as well, and one producer for them. Any thread may call.

    They are read to their ends before a write that depends on them, and again after it. *what* is what they hold, for errors. With a
    transactional id in *producer* a write is atomic, over all topics, and another producer with the same id fences this one (KIP-618).
    *may_write* raises when this process may not write now; it is asked before each call that writes, and right before each write. Each call
    gives up after *seconds*, in which it also waits for other threads, with :class:`~headrace.connect.errors.RetriableError`.
    """

    def __init__(
        self,
        producer: ClientConfig,
        *,
        what: str,
        may_write: Callable[[], None] = lambda: None,
        seconds: float = WRITE_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._what = what
        self._may_write = may_write
        self._writer = TopicWriter(producer, what=what, open_seconds=seconds, clock=clock)
        self._logs: list[CompactedLog] = []
        self._read_to: dict[str, int] = {}
        self._is_closed = False
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()

    def follow(
        self,
        topic: str,
        client: ClientConfig,
        apply: ApplyRecord,
        *,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """From now on read the existing *topic*, too, and *apply* its records; *then* is called when ``read_to`` counts the record as well.

        Called before any other method.
        """

        def take(record: LogRecord) -> None:
            try:
                apply(record.key, record.value)
            except UnreadableRecordError as error:
                _LOG.warning(
                    "A record of topic %r is passed over (partition %d, offset %d): %s.",
                    topic,
                    record.partition,
                    record.offset,
                    error,
                )
            # Last: whoever keeps what it found with the offset that it asked for must have found this record.
            self._read_to[topic] = record.offset + 1
            then()

        self._logs.append(CompactedLog(topic, client, on_record=take))

    def refresh(self, seconds: float | None = None) -> None:
        """See everything committed before this call, which gives up after *seconds* if they are given."""
        with self._alone(seconds) as deadline:
            self._read(deadline)

    def take_writing(self) -> None:
        """Fence earlier producers with the transactional id, if there is one: what they have not committed by then never counts.

        Who reads may be waiting for the end of a transaction that only this ends, so that it is not waited for here.
        """
        self._writer.take_over(Deadline.after(self._seconds, self._clock))

    def open_writer(self) -> None:
        """Make the producer now, so that no write has to wait for it, while others read; whoever may not write makes none."""
        self._may_write()
        self._writer.open(Deadline.after(self._seconds, self._clock))

    def take_arrived(self) -> None:
        """See what has arrived by now, without waiting, not even for another thread that reads."""
        if self._lock.acquire(blocking=False):
            try:
                for each in self._logs:
                    each.take_arrived()
            finally:
                self._lock.release()

    def read_to(self, topic: str) -> int:
        """The offset after the last record of *topic*, which has one partition, that was applied; -1 before, as Kafka Connect counts."""
        return self._read_to.get(topic, -1)

    @property
    def descriptors(self) -> Iterator[int]:
        """File descriptors that are readable when something has arrived."""
        return (found for each in self._logs if (found := each.descriptor) is not None)

    def write(self, *parts: TopicRecords) -> None:
        """Write *parts*, whatever others wrote; without a transaction, in their order."""
        with self._alone() as deadline:
            self._write(parts, deadline)

    def change(self, parts: Callable[[], Sequence[TopicRecords]]) -> None:
        """Write the *parts* that are given once everything committed before this call is seen; parts without records are left out."""
        # First: who may not write is not to wait for Kafka, nor for another thread that does.
        self._may_write()
        with self._alone() as deadline:
            self._read(deadline)
            self._write(parts(), deadline)

    def close(self) -> None:
        """Release the clients, after the calls that have begun."""
        with self._lock:
            self._is_closed = True
            self._writer.close()
            for each in self._logs:
                each.close()

    @contextmanager
    def _alone(self, seconds: float | None = None) -> Generator[Deadline]:
        seconds = self._seconds if seconds is None else seconds
        deadline = Deadline.after(seconds, self._clock)
        if not self._lock.acquire(timeout=seconds):
            raise RetriableError(
                f"Earlier reads and writes of {self._what} did not end in time. The broker is slow or unreachable."
            )
        try:
            yield deadline
        finally:
            self._lock.release()

    def _read(self, deadline: Deadline) -> None:
        if self._is_closed:
            # A run that has not ended within its grace may still ask.
            raise RetriableError("The worker is shutting down: its topics are not read any more.")
        for each in self._logs:
            each.read_to_end(deadline)

    def _write(self, parts: Sequence[TopicRecords], deadline: Deadline) -> None:
        kept = [(topic, entries) for topic, entries in parts if entries]
        if kept:
            self._may_write()
            self._writer.write(kept, deadline)
            self._read(deadline)


class StorageTopics(NamedTuple):
    """The names of existing, compacted topics. That of *configs* and that of *changes* have one partition."""

    configs: str
    statuses: str
    changes: str


class StorageClients(NamedTuple):
    """The settings of a storage's clients: the *reader* of all topics, the producer of who leads the group, and that of each *worker*."""

    reader: ClientConfig
    leader: ClientConfig
    worker: ClientConfig


class KafkaStorage:
    """The stores of a group of workers, in its *topics*; closing it closes all of them. Any thread may call.

    What they answer is as of the last ``refresh`` or write. The leader's client is the producer of configurations and changes: with a
    transactional id each write of them is one transaction, and another producer with the same id fences this one (KIP-618);
    *may_lead* raises when this process may not write them now. The worker's client is that of statuses and active topics, without one, and
    *generation*, if it is given, the group's, which is stored with each status; ``None`` while the group may have gone on without this
    worker. Each call gives up after *seconds*, with
    :class:`~headrace.connect.errors.RetriableError`. *now* gives seconds since 1970.
    """

    def __init__(
        self,
        topics: StorageTopics,
        clients: StorageClients,
        *,
        may_lead: Callable[[], None] = lambda: None,
        generation: Callable[[], int | None] | None = None,
        seconds: float = WRITE_SECONDS,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
    ) -> None:
        configs, changes, statuses = ConfigTopic(), ChangesTopic(), StatusTopic()
        led = SharedTopics(
            clients.leader,
            what="connector configurations",
            may_write=may_lead,
            seconds=seconds,
            clock=clock,
        )
        led.follow(topics.configs, clients.reader, configs.apply, then=self._tell_of_config)
        led.follow(topics.changes, clients.reader, changes.apply)
        own = SharedTopics(
            clients.worker, what="statuses", seconds=min(seconds, STATUS_SECONDS), clock=clock
        )
        own.follow(topics.statuses, clients.reader, statuses.apply)
        self._shared = (led, own)
        self._led = led
        self._topics = topics
        self._clients = clients
        self._seconds = seconds
        self._found = configs
        self._on_config: Callable[[], object] = lambda: None
        self.configs = KafkaConfigStore(led, topics, configs, changes)
        self.changes = KafkaChangeStore(led, topics.changes, changes, self.configs)
        self.statuses = KafkaStatusStore(own, topics.statuses, statuses, generation)
        self.topics = KafkaTopicStore(own, topics.statuses, statuses, now)

    def take_lead(self) -> None:
        """Keep an earlier leader from writing, also one that has begun to; without transactions its membership alone does."""
        self._led.take_writing()
        threading.Thread(
            target=in_log_context(self._open_writers), name="headrace-leading", daemon=True
        ).start()

    def _open_writers(self) -> None:
        try:
            # That of statuses, too: until a new producer has its id, what the leader removes could come after what another worker writes.
            for each in self._shared:
                each.open_writer()
        except ConnectError as error:
            _LOG.debug("The first write makes its own producer: %s", error)

    def refresh(self, seconds: float | None = None) -> None:
        """See everything committed before this call; *seconds*, if they are given, bound the reading of each producer's topics."""
        for each in self._shared:
            each.refresh(seconds)

    def take_arrived(self) -> None:
        """See what has arrived by now, without waiting; called by the one who follows the topics, when something has, or each second."""
        for each in self._shared:
            each.take_arrived()

    def follow_configs(self, on_record: Callable[[], object]) -> None:
        """From now on call *on_record* after each record of the config topic, once ``config_offset`` counts it, on whatever thread reads."""
        self._on_config = on_record

    @property
    def descriptors(self) -> Collection[int]:
        """File descriptors that are readable when records have arrived, until connections are replaced."""
        return [found for each in self._shared for found in each.descriptors]

    def _tell_of_config(self) -> None:
        self._on_config()

    @property
    def session_key(self) -> SessionKey | None:
        """The key with which workers sign their requests to each other, as of what has been read; ``None`` before one was written."""
        return self._found.session_key

    def put_session_key(self, key: SessionKey) -> None:
        """Store *key*, as the leader alone may; the other workers have it once they have read the topic to this place."""
        self._led.write((self._topics.configs, [session_key_entry(key)]))

    def follow_levels(self, set_level: Callable[[str, str], object]) -> None:
        """From now on call *set_level* with each logger and level that is read, on whatever thread reads; it raises ``ValueError`` for none.

        Those read before were meant for workers that ran then, as in Kafka Connect.
        """
        self._found.on_level = set_level

    def put_level(self, logger: str, level: str) -> None:
        """Have every worker of the group give *logger* this *level* once it reads so; any worker may call (KIP-976)."""
        # A topic that was deleted would be created by the broker for this record, otherwise than Kafka Connect needs it.
        self._led.refresh()
        # It is asked for too rarely to keep a connection for it.
        topics = SharedTopics(self._clients.worker, what="levels of loggers", seconds=self._seconds)
        with closing(topics) as writer:
            writer.write((self._topics.configs, [logger_entry(logger, level)]))

    def published_tasks(self, connector: str) -> int | None:
        """See :meth:`KafkaConfigStore.published_tasks`."""
        return self.configs.published_tasks(connector)

    def start_number(self, connector: str) -> int:
        """Another number each time a configuration of that connector has been read, or that it is stopped; 0 when it has none."""
        return self._found.records(connector).start_number

    def is_fenced(self, connector: str) -> bool:
        """Whether it was stored how many of the connector's present tasks may write (KIP-618)."""
        return self._found.records(connector).is_fenced

    def flush(self) -> bool:
        """Wait until the states that were put are written, for some seconds at most; returns whether they are."""
        return self.statuses.flush(STATUS_SECONDS)

    @property
    def failure(self) -> ConnectError | None:
        """Why Kafka has not taken states that were put; ``None`` while all is well."""
        return self.statuses.failure

    @property
    def config_offset(self) -> int:
        """The offset after the last record of the config topic that was applied, which the workers of a group compare."""
        return self._led.read_to(self._topics.configs)

    def close(self) -> None:
        """Write what waits, and release the clients."""
        self.statuses.close()
        for each in self._shared:
            each.close()


class KafkaConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore`; *found* is what its topic says, and *changes* that of changes of offsets."""

    def __init__(
        self, shared: SharedTopics, topics: StorageTopics, found: ConfigTopic, changes: ChangesTopic
    ) -> None:
        self._found = found
        self._shared = shared
        self._topic = topics.configs
        self._changes_topic = topics.changes
        self._changes = changes

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        return self._found.connectors()

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        return self._found.connector(name)

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector; its configuration is always written, since each record of one restarts the connector."""
        self._shared.change(lambda: [self.storing(connector, again=True)])

    def put_target_state(self, name: str, target_state: str) -> None:
        """Write the target state if it is another one, and no configuration."""

        def parts() -> Sequence[TopicRecords]:
            before = self._found.connector(name)
            if before is None or before.target_state == target_state:
                return ()
            return [(self._topic, [target_state_entry(name, target_state)])]

        self._shared.change(parts)

    def storing(self, connector: StoredConnector, *, again: bool = False) -> TopicRecords:
        """The records that store *connector*, for a caller that writes others with them; its configuration *again* if it is stored already."""
        before = self._found.records(connector.name)
        made: list[OffsetEntry] = []
        if (before.target_state or "RUNNING") != connector.target_state:
            made.append(target_state_entry(connector.name, connector.target_state))
        if again or before.config != connector.config:
            made.append(connector_entry(connector.name, connector.config))
        return self._topic, made

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""

        def parts() -> Sequence[TopicRecords]:
            before = self._found.records(name)
            is_stored = before.config is not None or before.target_state is not None
            gone = [connector_entry(name, None), target_state_entry(name, None)]
            # Changes until now are of another connector than any later one of that name.
            has_changes = any(not each.of_deleted for each in self._changes.entries(name))
            noted = [deletion_entry(name, self._changes.last)]
            return [
                (self._changes_topic, noted if has_changes else []),
                (self._topic, gone if is_stored else []),
            ]

        self._shared.change(parts)

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``; empty where compaction has taken a part of it."""
        return self._found.records(connector).tasks

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store a connector's tasks, unless they are stored, and were made from its present configuration."""

        def parts() -> Sequence[TopicRecords]:
            before = self._found.records(connector)
            is_in_force = not before.is_inconsistent and before.applied == before.config
            if is_in_force and before.tasks == tuple(configs):
                return ()
            return [(self._topic, task_entries(connector, configs))]

        self._shared.change(parts)

    def published_tasks(self, connector: str) -> int | None:
        """How many tasks the connector has that were made from its present configuration; ``None`` while it has none."""
        records = self._found.records(connector)
        is_in_force = not records.is_inconsistent and records.applied == records.config
        return (is_in_force and len(records.tasks)) or None

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        return self._found.records(connector).count

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts."""
        self._shared.write((self._topic, [task_count_entry(connector, count)]))


class KafkaChangeStore:
    """A :class:`~headrace.storage.protocols.ChangeStore`; *found* is what its *topic* says.

    Offsets are in other topics, under transactions of their own. So ``finish`` is called after they were written.
    """

    def __init__(
        self, shared: SharedTopics, topic: str, found: ChangesTopic, configs: KafkaConfigStore
    ) -> None:
        self._found = found
        self._shared = shared
        self._topic = topic
        self._configs = configs

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first; they outlive the connector."""
        return self._found.entries(connector)

    def open_intents(self) -> Sequence[Intent]:
        """The open changes, the oldest first, as of now.

        The topics are read one after the other, so that the record which ends a creation may arrive after that of its connector.
        """
        self._shared.refresh()
        return self._found.open_intents()

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and delete entries that *keep* excludes."""
        begun = intent

        def parts() -> Sequence[TopicRecords]:
            nonlocal begun
            begun = replace(intent, entry=replace(intent.entry, id=self._found.last + 1))
            removed = self._found.removals(begun.entry, keep)
            return [(self._topic, change_entries(begun)), (self._topic, removed)]

        self._shared.change(parts)
        return begun

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store the intent's new phase."""
        self._put_state(intent, ChangeState(phase, done=False))
        return replace(intent, phase=phase)

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """In one transaction: mark the change done, store its connector, end the intent.

        Without a transaction the connector is stored first. Raises ``ValueError`` for *entries*: offsets are not in this storage.
        """
        if entries:
            raise ValueError("Offsets are not stored with the changes of them in Kafka.")
        done = self._topic, [state_entry(intent.entry.id, ChangeState(None, done=True))]
        stored, configs = intent.stored, self._configs
        self._shared.change(lambda: [*([] if stored is None else [configs.storing(stored)]), done])

    def abandon(self, intent: Intent) -> None:
        """End the intent; its entry stays as one that was not done."""
        self._put_state(intent, ChangeState(None, done=False))

    def _put_state(self, intent: Intent, state: ChangeState) -> None:
        self._shared.write((self._topic, [state_entry(intent.entry.id, state)]))


class _Put(NamedTuple):
    """A status that waits to be written, or a removal, of the group's *generation*; *before* is what the topic was known to have then.

    Nothing counts as known to a worker without which the group may have gone on: what it has read may be a later owner's.
    """

    status: Status | None
    generation: int | None
    before: Status | None

    def is_overtaken(self, found: Status | None) -> bool:
        """Whether *found*, which the topic has now, was written meanwhile, and in a later generation: by a later owner."""
        return (
            found is not None
            and found != self.before
            and self.generation is not None
            and found.generation > self.generation
        )


_Waiting: TypeAlias = dict[int | None, _Put]


class KafkaStatusStore:
    """A :class:`~headrace.storage.protocols.StatusStore`; *found* is what its *topic* says.

    What is put is answered from then on, and written by a thread of this store's own, all that waits at once: a state must not keep those
    from their work whom it is about, nor end them when Kafka does not take it. Each status is stored with the group's *generation*, if
    that is given. What waits is given up when a later owner has written meanwhile, as in Kafka Connect: the group may have gone on
    without this worker while Kafka did not take it. So is what a worker puts that was frozen, and does not know yet what has become of it.
    """

    def __init__(
        self,
        shared: SharedTopics,
        topic: str,
        found: StatusTopic,
        generation: Callable[[], int | None] | None,
    ) -> None:
        self._found = found
        self._shared = shared
        self._topic = topic
        self._generation = generation
        self._joined: int | None = None
        # The newest of each task, by connector.
        self._waiting: dict[str, _Waiting] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.failure: ConnectError | None = None
        """Why Kafka has not taken what waits; ``None`` while all is well."""

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Store a status. What ends here leaves alone what a later owner has written, as in Kafka Connect."""
        is_member = self._is_member()
        own = status if self._joined is None else replace(status, generation=self._joined)
        with self._changed:
            if may_replace(own, self._known(connector).get(task)):
                self._wait_with(connector, {task: own}, is_member=is_member)

    def statuses(self, connector: str) -> Mapping[int | None, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        with self._changed:
            return self._known(connector)

    def connectors(self) -> Sequence[str]:
        """The names that have any status, sorted."""
        with self._changed:
            names = {*self._found.connectors(), *self._waiting}
            return sorted(name for name in names if self._known(name))

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""
        is_member = self._is_member()
        with self._changed:
            tasks = (
                task
                for task in self._known(connector)
                if from_task is None or (task is not None and task >= from_task)
            )
            self._wait_with(connector, dict.fromkeys(tasks), is_member=is_member)

    def flush(self, seconds: float) -> bool:
        """Wait until all is written, for at most *seconds*; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def close(self) -> None:
        """Write what waits, if Kafka takes it in time, and end the thread."""
        self.flush(STATUS_SECONDS)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _known(self, connector: str) -> dict[int | None, Status]:
        found = self._found.statuses(connector)
        waiting = self._waiting.get(connector, {})
        put = {
            task: each.status
            for task, each in waiting.items()
            if not each.is_overtaken(found.get(task))
        }
        return {task: status for task, status in {**found, **put}.items() if status is not None}

    def _is_member(self) -> bool:
        """Whether the group cannot have gone on without this worker; which generation that is, is noted."""
        if self._generation is None:
            return True
        generation = self._generation()
        if generation is None:
            return False
        self._joined = generation
        return True

    def _wait_with(
        self, connector: str, statuses: Mapping[int | None, Status | None], *, is_member: bool
    ) -> None:
        found = self._found.statuses(connector) if is_member else {}
        for task, status in statuses.items():
            put = _Put(status, self._joined, found.get(task))
            self._waiting.setdefault(connector, {})[task] = put
        self._changed.notify_all()
        if self._thread is None and self._waiting:
            self._thread = threading.Thread(
                target=in_log_context(self._write), name="headrace-statuses", daemon=True
            )
            self._thread.start()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                taken = {name: dict(each) for name, each in self._waiting.items()}
            try:
                self._shared.change(partial(self._parts, taken))
            except Exception as error:  # noqa: BLE001 (without this thread no status would be written any more, and no one would know)
                self.failure = (
                    error
                    if isinstance(error, ConnectError)
                    else TaskFailedError(f"Statuses cannot be written: {error!r}")
                )
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, _RETRY_SECONDS)
                continue
            self.failure = None
            with self._changed:
                for name, statuses in taken.items():
                    self._are_written(name, statuses)
                self._changed.notify_all()

    def _are_written(self, connector: str, statuses: _Waiting) -> None:
        waiting = self._waiting[connector]
        for task, each in statuses.items():
            # Another one may have been put meanwhile.
            if waiting[task] is each:
                del waiting[task]
        if not waiting:
            del self._waiting[connector]

    def _parts(self, taken: Mapping[str, _Waiting]) -> Sequence[TopicRecords]:
        return [(self._topic, list(self._entries(taken)))]

    def _entries(self, taken: Mapping[str, _Waiting]) -> Iterator[OffsetEntry]:
        for connector, statuses in taken.items():
            found = self._found.statuses(connector)
            for task, each in statuses.items():
                before, status = found.get(task), each.status
                # What another worker has removed is not removed again: a status of a new connector of the name may be on its way.
                may_write = before is not None if status is None else may_replace(status, before)
                if may_write and not each.is_overtaken(before):
                    yield status_entry(connector, task, status)


class KafkaTopicStore:
    """A :class:`~headrace.storage.protocols.TopicStore`; *found* is what the *topic* of statuses says, which has them, too."""

    def __init__(self, shared: SharedTopics, topic: str, found: StatusTopic, now: Clock) -> None:
        self._found = found
        self._shared = shared
        self._topic = topic
        self._now = now

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        return self._found.topics(connector)

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        at_ms = int(self._now() * 1000)

        def parts() -> Sequence[TopicRecords]:
            new = sorted(set(topics).difference(self._found.topics(connector)))
            # Readers want the number of a task, and it is not known which one was the first.
            return [
                (self._topic, [topic_entry(connector, each, task=0, at_ms=at_ms) for each in new])
            ]

        self._shared.change(parts)

    def forget(self, connector: str) -> None:
        """Remove all of them."""

        def parts() -> Sequence[TopicRecords]:
            known = self._found.topics(connector)
            return [(self._topic, [removed_topic_entry(connector, each) for each in known])]

        self._shared.change(parts)
