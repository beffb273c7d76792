"""One real Kafka broker, started, killed and started again at will, on free ports of loopback."""

from __future__ import annotations

import base64
import os
import random
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.broker.folder import (
    BrokerState,
    Layout,
    as_text,
    read_state,
    server_properties,
    write_state,
)
from headrace.connect.errors import ConnectError
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java
from headrace.pids import identity_of, send

# The variables by which Kafka's own start script lets its options of Java be replaced, each with the default.
JVM_OPTIONS = {
    "KAFKA_HEAP_OPTS": "-Xms256m -Xmx1g",
    "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseG1GC -XX:MaxGCPauseMillis=20 "
    "-XX:InitiatingHeapOccupancyPercent=35 -Djava.awt.headless=true",
}
# A program that runs for a second is faster without the optimising compiler.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FORMAT_SECONDS = 120.0
WATCHER = Path(__file__).with_name("leash.py")
LOOPBACK = "127.0.0.1"
# Below the ports that systems give to outgoing connections: there, a client that keeps trying to
# reach a broker that is down may be given the broker's own port and so keep it from coming back.
FREE_PORTS = range(20_000, 32_000)
ANSWER_SECONDS = 2.0
METADATA_KEY, METADATA_VERSION = 3, 1
# Short enough not to be noticed, long enough to cost nothing.
LOOK_SECONDS = 0.05
START_SECONDS = 90.0
STOP_SECONDS = 20.0
KILL_SECONDS = 10.0
STOPPED = BrokerState(pid=0, identity="", port=0, controller_port=0, log_file="")


def format_storage(layout: Layout, *, features: Mapping[str, int]) -> None:
    """Format Kafka's storage in the folder, with these levels of *features*; takes about a second."""
    command = _java(layout, SHORT_LIVED)
    command += ["kafka.tools.StorageTool", "format", "-t", _new_cluster_id()]
    command += ["-c", str(layout.settings)]
    for name, level in features.items():
        command += ["--feature", f"{name}={level}"]
    with layout.log_file.open("ab") as output:
        code = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=FORMAT_SECONDS,
            check=False,
        ).returncode
    if code:
        raise ConnectError(
            f"Kafka could not format its storage in {layout.stored} (exit code {code}):\n"
            f"{layout.log_tail()}\nCorrect what it reports and start again with --fresh."
        )


def launch(layout: Layout, *, leash: int | None) -> subprocess.Popen[bytes]:
    """Start the broker and return at once.

    *leash* is the reading end of a pipe: the broker is killed when the writing end is closed. Without
    one the broker keeps running. Either way it has a session of its own, so that Ctrl-C in the
    terminal does not reach it.
    """
    command = [*_java(layout, jvm_options(os.environ)), "kafka.Kafka", str(layout.settings)]
    if leash is not None:
        command = [sys.executable, "-I", "-S", str(WATCHER), str(leash), *command]
    with layout.log_file.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=layout.folder,
            start_new_session=True,
            pass_fds=() if leash is None else (leash,),
        )


def jvm_options(environ: Mapping[str, str]) -> list[str]:
    """The options of a broker's JVM in that environment. Pure."""
    chosen = (environ.get(name) or default for name, default in JVM_OPTIONS.items())
    return [option for options in chosen for option in shlex.split(options)]


def _java(layout: Layout, options: Sequence[str]) -> list[str]:
    java = find_java()
    logging = f"-Dlog4j2.configurationFile={layout.log_config.as_uri()}"
    jars = class_path("broker", java=java)
    return [str(java.executable), *options, logging, "-cp", jars]


def _new_cluster_id() -> str:
    # In the form of Kafka's own ids, without starting Java; one with a leading dash would be read as an option.
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return made if not made.startswith("-") else _new_cluster_id()


def leash_pipe() -> tuple[int, int]:
    """A pipe for *leash*: (reading end, writing end); no other program inherits either."""
    return os.pipe()


def free_port(*, choices: random.Random, apart_from: int = 0) -> int:
    """A port that no one listens on at this moment."""
    for port in choices.sample(FREE_PORTS, k=200):
        if port != apart_from and is_free(port):
            return port
    raise ConnectError("No free port was found on 127.0.0.1; name one with --port.")


def is_free(port: int) -> bool:
    """Whether no one listens on *port* of loopback or of all interfaces."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether a Kafka broker on *port* answers and counts itself as alive.

    One Metadata request, written by hand: this package needs no Kafka client.
    """
    request = struct.pack(">hhih", METADATA_KEY, METADATA_VERSION, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return live_brokers(_exactly(connection, 12)) > 0
    except OSError:
        return False


def live_brokers(answer: bytes) -> int:
    """The number of brokers in the start of a Metadata answer (length, correlation, count)."""
    _length, _correlation, count = struct.unpack(">iii", answer)
    return int(count)


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("The broker closed the connection.")
        content += part
    return content


def until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until *condition* is true, at most *seconds*; returns whether it became true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


class Broker:
    """A single-node KRaft broker of Kafka 4.3.1 on 127.0.0.1, whose storage lives in *folder*.

    *port* 0 means a free one, chosen at the first start; later starts in the same folder use the same one.
    *properties* are settings of the broker that win over ours; *features* are levels of Kafka's features that its storage is
    formatted with instead of the newest ones, such as ``{"transaction.version": 1}``. A *detached* broker keeps running
    when this Python process ends; any other is killed with it, however it ends.

    As a context manager it starts on entry and stops on exit. One thread owns an object of this class.
    Other processes may use the folder, too: the state is in a file there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        log_folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
        detached: bool = False,
    ) -> None:
        folder = folder.absolute()
        self._layout = Layout(folder=folder, log_folder=(log_folder or folder / "log").absolute())
        self._wanted_port = port
        self._properties = dict(properties or {})
        self._features = dict(features or {})
        self._detached = detached
        self._child: subprocess.Popen[bytes] | None = None
        self._leash: int | None = None

    @property
    def state(self) -> BrokerState | None:
        """The stored state of the last start; None when there was none."""
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
        """The output of the broker."""
        return self._layout.log_file

    def start(self, *, fresh: bool = False, seconds: float = START_SECONDS) -> Self:
        """Start the broker and return when it answers; does nothing when it runs already.

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
        # A paused process handles SIGTERM only when it is continued.
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
        # Written before anything is stored: it proves later that the folder is ours.
        write_state(self._layout.folder, self._state(0, port=port, controller_port=controller_port))
        if not self._layout.is_formatted:
            format_storage(self._layout, features=self._features)
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
        port = self._wanted_port or before.port or free_port(choices=choices)
        if not is_free(port):
            raise ConnectError(
                f"Port {port} is in use by another program. Stop that one, or choose another port "
                "with --port (0 takes a free one)."
            )
        controller_port = before.controller_port
        if not controller_port or controller_port == port or not is_free(controller_port):
            controller_port = free_port(choices=choices, apart_from=port)
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
        up = until(lambda: child.poll() is not None or answers(port), seconds=seconds)
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
        """Collect the dead child and close the leash."""
        if self._child is not None:
            self._child.wait()
            self._child = None
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None
