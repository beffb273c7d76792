"""What sessions have answered to questions that are asked with every micro-batch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Answer = TypeVar("Answer")

# A worker has few connectors with a step, and each asks the same again.
_MOST = 32


class Answers(Generic[Answer]):
    """Remembers the last answers of each session for as long as somebody else has that session. Any thread may ask.

    A question whose answer raises is asked again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, OrderedDict[Hashable, Answer]] = WeakKeyDictionary()

    def of(self, session: Any, question: Hashable, ask: Callable[[], Answer]) -> Answer:  # noqa: ANN401 (any session)
        """The answer of *session* to *question*, which *ask* gets where it is not known."""
        with self._lock:
            known = self._of.setdefault(session, OrderedDict())
            if question in known:
                known.move_to_end(question)
                return known[question]
        answer = ask()
        with self._lock:
            known = self._of.setdefault(session, OrderedDict())
            known[question] = answer
            if len(known) > _MOST:
                known.popitem(last=False)
        return answer
