"""One real Kafka broker, started, killed and started again at will."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.broker import ports
from headrace.broker.launch import format_storage, launch, leash_pipe
from headrace.broker.layout import Layout
from headrace.broker.properties import as_text, server_properties
from headrace.broker.state import BrokerState, read_state, write_state
from headrace.broker.waiting import until
from headrace.connect.errors import ConnectError
from headrace.pids import identity_of, send

START_SECONDS = 90.0
STOP_SECONDS = 20.0
KILL_SECONDS = 10.0
STOPPED = BrokerState(pid=0, identity="", port=0, controller_port=0, log_file="")


class Broker:
    """A single-node KRaft broker of Kafka 4.3.1 on 127.0.0.1, whose storage lives in *folder*.

    *port* 0 means a free one, chosen at the first start; later starts of the same folder take the same
    ports. *properties* are settings of the broker that win over ours. A broker that is *detached* goes
    on when this Python process ends; any other is killed with it, however it ends.

    As a context manager it starts on entry and stops on exit. One thread owns an object of this class.
    The folder may be handled by other processes too: its state is in a file there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        log_folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        detached: bool = False,
    ) -> None:
        folder = folder.absolute()
        self._layout = Layout(folder=folder, log_folder=(log_folder or folder / "log").absolute())
        self._wanted_port = port
        self._properties = dict(properties or {})
        self._detached = detached
        self._child: subprocess.Popen[bytes] | None = None
        self._leash: int | None = None

    @property
    def state(self) -> BrokerState | None:
        """What is remembered of the last start; None when there was none."""
        return read_state(self._layout.folder)

    @property
    def is_running(self) -> bool:
        """Whether the broker's process lives, also when it is paused or not ready yet."""
        state = self.state
        return state is not None and state.is_running

    @property
    def bootstrap(self) -> str:
        """``127.0.0.1:port``, also while it is down. Raises ConnectError before the first start."""
        return self._started().bootstrap

    @property
    def port(self) -> int:
        """The port clients connect to. Raises ConnectError before the first start."""
        return self._started().port

    @property
    def pid(self) -> int:
        """The process id of the broker itself (Java). Raises ConnectError before the first start."""
        return self._started().pid

    @property
    def log_file(self) -> Path:
        """What the broker says."""
        return self._layout.log_file

    def start(self, *, fresh: bool = False, seconds: float = START_SECONDS) -> Self:
        """Start and return when the broker answers; nothing is done when it runs already.

        *fresh* removes everything it stored before. Raises ConnectError, with the log's last lines,
        when it ends or does not answer within *seconds*; nothing runs then.
        """
        self._layout.make()
        with self._layout.alone():
            if self.is_running:
                if fresh:
                    raise ConnectError(f"The broker {self.bootstrap} runs; stop it before --fresh.")
                return self
            if fresh:
                self._layout.wipe()
            self._start(seconds)
        return self

    def stop(self, *, seconds: float = STOP_SECONDS) -> bool:
        """Ask it to end, kill it when it has not after *seconds*; False when it did not run."""
        if not self._signal(signal.SIGTERM):
            self._forget()
            return False
        # A paused process hears SIGTERM only when it goes on.
        self._signal(signal.SIGCONT)
        if not until(lambda: not self.is_running, seconds=seconds):
            self.kill()
        self._forget()
        return True

    def kill(self) -> None:
        """SIGKILL, as a machine that loses power; what is stored stays. Returns when it is dead."""
        self._signal(signal.SIGKILL)
        if not until(lambda: not self.is_running, seconds=KILL_SECONDS):
            raise ConnectError(f"The broker's process {self.pid} does not die.")
        self._forget()

    def restart(self) -> Self:
        """Start again on the same ports with what is stored, stopping it first when it runs."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, after `pause`."""
        self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, seconds: float) -> None:
        port, controller_port = self._ports()
        properties = server_properties(
            port=port,
            controller_port=controller_port,
            log_dirs=self._layout.stored,
            overrides=self._properties,
        )
        self._layout.settings.write_text(as_text(properties))
        # Written before anything is stored: it tells later that the folder is ours.
        write_state(self._layout.folder, self._state(0, port=port, controller_port=controller_port))
        if not self._layout.is_formatted:
            format_storage(self._layout)
        try:
            child = self._launched()
            state = self._state(child.pid, port=port, controller_port=controller_port)
            write_state(self._layout.folder, state)
            self._await_answer(child, port=port, seconds=seconds)
        except BaseException:
            self.kill()
            raise

    def _ports(self) -> tuple[int, int]:
        before = self.state or STOPPED
        choices = random.SystemRandom()
        port = self._wanted_port or before.port or ports.free_port(choices=choices)
        if not ports.is_free(port):
            raise ConnectError(
                f"Port {port} is in use by another program. Stop that one, or choose another port "
                "with --port (0 takes a free one)."
            )
        controller_port = before.controller_port
        if not controller_port or controller_port == port or not ports.is_free(controller_port):
            controller_port = ports.free_port(choices=choices, apart_from=port)
        return port, controller_port

    def _launched(self) -> subprocess.Popen[bytes]:
        if self._detached:
            self._child = launch(self._layout, leash=None)
            return self._child
        reading, self._leash = leash_pipe()
        try:
            self._child = launch(self._layout, leash=reading)
        finally:
            os.close(reading)
        return self._child

    def _await_answer(self, child: subprocess.Popen[bytes], *, port: int, seconds: float) -> None:
        up = until(lambda: child.poll() is not None or ports.answers(port), seconds=seconds)
        if up and child.poll() is None:
            return
        ended = (
            f"ended with code {child.poll()}" if up else f"did not answer within {seconds:.0f} s"
        )
        raise ConnectError(
            f"The broker {ended}. Its log ({self.log_file}) ends with:\n{self._layout.log_tail()}"
        )

    def _state(self, pid: int, *, port: int, controller_port: int) -> BrokerState:
        return BrokerState(
            pid=pid,
            identity=(identity_of(pid) or "") if pid else "",
            port=port,
            controller_port=controller_port,
            log_file=str(self.log_file),
        )

    def _started(self) -> BrokerState:
        state = self.state
        if state is None:
            raise ConnectError(f"No broker was started in {self._layout.folder} yet.")
        return state

    def _signal(self, signal_number: signal.Signals) -> bool:
        state = self.state
        if state is None or not state.pid:
            return False
        return send(signal_number, pid=state.pid, identity=state.identity)

    def _forget(self) -> None:
        """Collect the dead child and let the leash go."""
        if self._child is not None:
            self._child.wait()
            self._child = None
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None
