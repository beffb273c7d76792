"""A proxy in front of an S3 server that has bad moments when it is told to."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Fault:
    """Done to the first *times* requests of *method* whose target contains *target*."""

    method: str = ""
    target: str = ""
    times: int = 1
    status: int = 0
    """Answer with this in place of the server."""
    code: str = ""
    cut_at: int | None = None
    """Send this many bytes of the body and then close the connection."""
    change: Callable[[Answer], Answer] | None = None
    """Send another answer."""
    drop: str = ""
    """Keep this header of the request, or this parameter of its query, from the server."""


class Proxy:
    """Passes requests on to *port* on this machine; ``seen`` are those that came, as method and target."""

    def __init__(self, port: int) -> None:
        self.seen: list[tuple[str, str]] = []
        self._port = port
        self._faults: list[Fault] = []
        self._left: list[int] = []
        self._lock = threading.Lock()

    def fail(self, fault: Fault) -> None:
        """Have a bad moment once the next fitting request comes."""
        self._faults.append(fault)
        self._left.append(fault.times)

    def forget(self) -> None:
        """Be without faults, and as if nothing had been asked."""
        self._faults.clear()
        self._left.clear()
        self.seen.clear()

    def fault_for(self, method: str, target: str) -> Fault | None:
        """The fault that this request meets, if any."""
        with self._lock:
            self.seen.append((method, target))
            for index, fault in enumerate(self._faults):
                if self._left[index] and fault.method in ("", method) and fault.target in target:
                    self._left[index] -= 1
                    return fault
        return None

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The server's answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


@contextmanager
def running(proxy: Proxy) -> Generator[str]:
    """The address of *proxy* while it runs."""

    class Handler(_Handler):
        to = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    to: Proxy
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes, which would otherwise wait for each other.
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Serve a connection until it ends, in whatever way."""
        # Who jumps elsewhere in an object does not wait for the rest of it.
        with suppress(ConnectionError):
            super().handle()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.to.fault_for(self.command, self.path)
        if fault and fault.status:
            text = f"<Error><Code>{fault.code}</Code><Message>A bad moment</Message></Error>"
            self._send(Answer(fault.status, {}, text.encode()))
            return
        headers, target = dict(self.headers.items()), self.path
        if fault and fault.drop:
            headers = {name: text for name, text in headers.items() if name.lower() != fault.drop}
            path, _, query = target.partition("?")
            kept = [each for each in query.split("&") if not each.startswith(f"{fault.drop}=")]
            target = f"{path}?{'&'.join(kept)}" if kept != [""] else path
        answer = self.to.ask(self.command, target, headers, body)
        if fault and fault.change:
            answer = fault.change(answer)
        self._send(answer, fault.cut_at if fault else None)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 (names of http.server)

    def _send(self, answer: Answer, cut_at: int | None = None) -> None:
        self.send_response(answer.status)
        length = str(len(answer.body))
        for name, text in answer.headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = text
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, text)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[:cut_at])
        if cut_at is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""
