"""Copying within a container of Azure, which may go on behind the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import StoreUnavailableError

_log = logging.getLogger(__name__)
_POLLS = 600
_POLL_SECONDS = 1.0

Ask = Callable[..., Mapping[str, str]]
"""Sends a request about a blob and returns the answer's headers.

Takes the key that errors are about, the operation's name, the method, the key that is addressed, and as
keywords ``query`` and ``headers``.
"""


class AzureCopy:
    """Copies to a blob and waits until Azure says that the copy is whole."""

    def __init__(self, store: str, ask: Ask, sleep: Callable[[float], object]) -> None:
        self._store = store
        self._ask = ask
        self._sleep = sleep

    def copy(self, key: str, target: str, condition: Mapping[str, str]) -> None:
        """Copy *key*, which *condition* names as headers, to *target*."""
        answer = self._ask(key, "Copy Blob", "PUT", target, headers=condition)
        if answer.get("x-ms-copy-status") == "success":
            return
        try:
            self._await(key, target)
        except BaseException:
            self._undo(target, answer.get("x-ms-copy-id", ""))
            raise

    def _await(self, key: str, target: str) -> None:
        status, more = "pending", ""
        for _ in range(_POLLS):
            found = self._ask(target, "Get Blob Properties", "HEAD", target)
            status = found.get("x-ms-copy-status", "lost")
            more = found.get("x-ms-copy-status-description", "")
            if status != "pending":
                break
            self._sleep(_POLL_SECONDS)
        if status != "success":
            raise StoreUnavailableError(
                f"{self._store}: {target!r}: The copy of {key!r} is {status}. {more}".rstrip()
            )

    def _undo(self, target: str, copy_id: str) -> None:
        """Remove what would look like an object: Azure shows a copy before it is whole."""
        for asked, method, query, headers in (
            (
                "Abort Copy Blob",
                "PUT",
                {"comp": "copy", "copyid": copy_id},
                {"x-ms-copy-action": "abort"},
            ),
            ("Delete Blob", "DELETE", {}, {}),
        ):
            try:
                self._ask(target, asked, method, target, query=query, headers=headers)
            except (OSError, TaskFailedError) as error:
                # A copy that ended cannot be aborted; what made it fail is what counts, and is raised.
                _log.warning("A copy that is not whole could not be removed: %s", error)
