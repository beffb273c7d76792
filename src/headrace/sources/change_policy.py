"""Objects whose content changed after records of them were sent."""

from __future__ import annotations

import logging
from typing import Final, Literal

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.sources.keys import Ordered

_log = logging.getLogger(__name__)

Policy = Literal["fail", "reread", "ignore"]

_ADVICE: Final = (
    "Set native.changed=reread to read such objects again from their beginning, or native.changed=ignore to "
    "leave them alone."
)


def is_changed(sent: OffsetValue, now: str | None) -> bool:
    """Whether an object of version *now* is another one than that of version *sent*; unknown ones are not."""
    return sent is not None and now is not None and sent != now


class ChangePolicy:
    """What the *policy* says of such objects, told in the log once for each version. Used on one thread."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._told = dict[Ordered, str | None]()

    def is_reread(self, native_key: Ordered, *, sent: OffsetValue, now: str | None) -> bool:
        """Whether to read the object from its beginning, or to leave it alone.

        Raises :class:`~headrace.connect.errors.TaskFailedError` where the policy is to fail.
        """
        complaint = (
            f"{native_key}: The object was overwritten after records of it were sent: it had the version "
            f"{sent}, and has {now} now."
        )
        if self._policy == "fail":
            raise TaskFailedError(f"{complaint} {_ADVICE}")
        reread = self._policy == "reread"
        if self._told.get(native_key) != now:
            self._told[native_key] = now
            done = "read again from its beginning" if reread else "left alone"
            _log.warning("%s It is %s, as native.changed=%s says.", complaint, done, self._policy)
        return reread
