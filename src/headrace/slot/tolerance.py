"""Records that cannot be read, converted or sent: passed over, counted and told, as ``errors.tolerance`` says."""

from __future__ import annotations

import logging

from headrace.connect.errors import ConnectError, RecordError, TaskFailedError
from headrace.kafka.sender import Sender, TooLargeError
from headrace.observe.hidden import Hidden
from headrace.slot.commits import Commits
from headrace.slot.dead_letters import DeadLetters, PassedOver
from headrace.slot.work import ErrorPolicy, Progress

_log = logging.getLogger(__name__)

_SHOWN_BYTES = 2_000
_NOT_ONE_RECORD = "errors.tolerance=all does not help here: this is not about one record behind which reading could go on."
_TOO_LATE = (
    "errors.tolerance=all does not help here, because it was refused only after it had been sent together with "
    "others. Lower max.request.size of this producer to the topic's max.message.bytes: larger records are then "
    "passed over before they are sent."
)


class Tolerance:
    """What is done with bad records in one slot. Used by the writing half.

    Letters are part of what is committed or thrown away, as the records around them.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        progress: Progress,
        *,
        sender: Sender,
        commits: Commits,
        connector: str,
        task: int,
        hidden: Hidden | None = None,
    ) -> None:
        self._policy = policy
        self._progress = progress
        self._sender = sender
        self._commits = commits
        self._owner = f"{connector}-{task}"
        self._letters: DeadLetters | None = None
        if policy.dead_letters is not None:
            self._letters = DeadLetters(
                topic=policy.dead_letters,
                context=policy.headers,
                connector=connector,
                task=task,
                hidden=hidden or Hidden(),
            )
        self._waiting = 0
        self._quarantined = 0

    @property
    def is_on(self) -> bool:
        """Whether bad records are passed over."""
        return self._policy.tolerate

    def pass_over(self, passed: PassedOver) -> None:
        """Send the record's dead letter, or skip it. Raises ``TaskFailedError`` when the letter is refused."""
        self._progress.record_errors += 1
        if self._letters is not None:
            self._commits.before_records(self._letters.topic)
            self._send(self._letters, passed)
        self._waiting += 1
        self._quarantined += passed.bad.quarantines
        where = self._policy.dead_letters
        fate = f"It is a dead letter in topic {where!r}." if where else "It is skipped."
        self._note(passed.error, passed.stage, passed.class_name, passed.bad.raw, fate=fate)

    def failing(self, error: ConnectError, *, stage: str, by: str, raw: bytes | None) -> None:
        """*error* of a record that holds *raw* is about to fail the task."""
        self._progress.record_errors += 1
        self._note(error, stage, by, raw, fate="It fails the task.")

    def committed(self) -> None:
        """What was passed over is behind for good."""
        if self._letters is None:
            self._progress.skipped += self._waiting
        else:
            self._progress.dead_lettered += self._waiting
        self._progress.quarantined += self._quarantined
        self._waiting = self._quarantined = 0

    def dropped(self) -> None:
        """What was passed over was thrown away with its transaction, on the connector's request."""
        self._waiting = self._quarantined = 0

    def too_late(self, error: ConnectError) -> ConnectError:
        """*error* of the broker, with why it is not tolerated when others are."""
        return TaskFailedError(f"{error} {_TOO_LATE}") if self.is_on else error

    def _send(self, letters: DeadLetters, passed: PassedOver) -> None:
        refused: RecordError = passed.error
        for letter in letters.attempts(passed):
            try:
                self._sender.send(letter)
            except TooLargeError as error:
                refused = error
            except RecordError as error:
                refused = error
                break
            else:
                return
        self._progress.letters_refused += 1
        raise _unsent(letters.topic, refused, passed) from refused

    def _note(
        self, error: ConnectError, stage: str, by: str, raw: bytes | None, *, fate: str
    ) -> None:
        """Tell of a record that is not sent in the log, if that is asked for."""
        if not self._policy.log:
            return
        self._progress.errors_logged += 1
        shown = ""
        if self._policy.log_content and raw is not None:
            shown = f" It holds {raw[:_SHOWN_BYTES]!r}."
        _log.warning(
            "Error encountered in task %s. Executing stage '%s' with class '%s'. %s %s%s",
            self._owner,
            stage,
            by,
            str(error).removesuffix(".") + ".",
            fate,
            shown,
        )


def _unsent(topic: str, error: RecordError, passed: PassedOver) -> TaskFailedError:
    return TaskFailedError(
        f"The dead letter of a record cannot be sent to topic {topic!r}: {error} It is about: {passed.error}"
    )


def untolerated(error: Exception) -> Exception:
    """*error* of ``poll``, with why it is not tolerated when others are."""
    if not isinstance(error, RecordError | TaskFailedError):
        return error
    told = TaskFailedError(f"{error} {_NOT_ONE_RECORD}")
    told.__cause__ = error
    return told
