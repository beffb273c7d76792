"""An engine without Spark: each slot in a Python process of its own, which a test may stop, wake or kill."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence

from headrace.connect.errors import RetriableError
from headrace.slot.entry import run_slot
from headrace.slot.split.between import Between, refuse_sql
from headrace.slot.work import SlotTicket


class ProcessEngine:
    """Implements ``Engine``. *python_path* is put in front of the children's module search path.

    Like Spark, it loses the whole job as soon as one slot's process dies, and leaves the others running.
    """

    def __init__(self, *, slots: int = 4, python_path: Sequence[str] = ()) -> None:
        self.slots = slots
        self.is_starting = False
        self._python_path = list(python_path)
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []

    def run(self, tickets: Sequence[SlotTicket], between: Between | None = None) -> None:
        """Run one process per ticket; raises ``RetriableError`` when one of them dies."""
        refuse_sql(between)
        children = [self._started(ticket) for ticket in tickets]
        with self._lock:
            self._children.extend(children)
        left = list(children)
        while left:
            for child in list(left):
                try:
                    code = child.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
                left.remove(child)
                if code:
                    raise RetriableError(f"The process {child.pid} of a slot ended with {code}.")

    def close(self) -> None:
        """Kill what is left."""
        with self._lock:
            for child in self._children:
                child.kill()
                child.wait()
            self._children.clear()

    def _started(self, ticket: SlotTicket) -> subprocess.Popen[bytes]:
        words = {
            "host": ticket.host,
            "port": ticket.port,
            "secret": ticket.secret.hex(),
            "token": ticket.token,
            "path": [*self._python_path, *sys.path],
        }
        # A program of its own and not a fork: the test's process has threads and a Kafka client.
        child = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE)
        if child.stdin is not None:
            child.stdin.write(json.dumps(words).encode())
            child.stdin.close()
        return child


def main() -> None:
    """A slot's process: reads its ticket from standard input and runs it."""
    words = json.loads(sys.stdin.read())
    sys.path[:] = words["path"]
    run_slot(
        SlotTicket(
            host=words["host"],
            port=words["port"],
            secret=bytes.fromhex(words["secret"]),
            token=words["token"],
        )
    )


if __name__ == "__main__":
    main()
