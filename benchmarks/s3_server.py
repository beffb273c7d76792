"""A server that speaks as much of S3 as reading needs: one folder's files, or as many keys as are wanted.

``python -m benchmarks.s3_server FOLDER|COUNT`` writes its port and serves until it is ended. It is a process
of its own, so that what it costs is no one else's.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from benchmarks.contender import ROOT, BenchmarkError
from benchmarks.s3_answers import Listed, page, ranged
from headrace.stores.checksum import Checksum

BUCKET = "benchmark"
PREFIX = "logs/"
_PAGE = 1000
_DAY = 10_000


def made_up(number: int) -> Listed:
    """The object with that *number*; keys rise with it. Pure."""
    key = f"{PREFIX}2026/{number // _DAY:04}/events-{number:08}.jsonl"
    return Listed(key=key, size=1000 + number % 777, etag=f"{number:032x}")


def settings_of(url: str) -> Mapping[str, str]:
    """What a connector needs in addition to ``files.path`` to read from the server at *url*."""
    return {
        "s3.endpoint": url,
        "s3.access.key.id": "benchmark",
        "s3.secret.access.key": "benchmark",
    }


@contextmanager
def s3_server(serves: Path | int) -> Generator[str]:
    """The address of a server of a folder's files, or of so many keys, while it runs."""
    command = [sys.executable, "-m", "benchmarks.s3_server", str(serves)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = process.stdout.readline().strip()
            if not port:
                raise BenchmarkError("The server of objects did not start.")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes.
    disable_nagle_algorithm = True
    serves: ClassVar[str]

    def do_HEAD(self) -> None:
        """HeadObject."""
        self._object(body=False)

    def do_GET(self) -> None:
        """ListObjectsV2 or GetObject."""
        target = urlsplit(self.path)
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        if query.get("list-type") == "2":
            self._send(self._listing(query), {"Content-Type": "application/xml"})
        else:
            self._object(body=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        """Log nothing."""

    def _listing(self, query: Mapping[str, str]) -> bytes:
        if not self.serves.isdecimal():
            found = [
                _listed(each) for each in sorted(Path(self.serves).iterdir()) if each.is_file()
            ]
            prefix = query.get("prefix", "")
            return page([each for each in found if each.key.startswith(prefix)], token=None)
        start, count = int(query.get("continuation-token", 0)), int(self.serves)
        end = min(count, start + _PAGE)
        objects: Iterable[Listed] = map(made_up, range(start, end))
        return page(objects, token=str(end) if end < count else None)

    def _object(self, *, body: bool) -> None:
        name = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")
        path = Path(self.serves) / name
        if not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        listed = _listed(path)
        wanted = ranged(self.headers.get("Range"), listed.size)
        if not wanted and listed.size:
            self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return
        part = len(wanted) < listed.size
        self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
        self.send_header("Content-Length", str(len(wanted)))
        self.send_header("ETag", f'"{listed.etag}"')
        self.send_header("Last-Modified", "Sun, 01 Mar 2026 10:20:30 GMT")
        if not part and self.headers.get("x-amz-checksum-mode") == "ENABLED":
            # S3's own, of an object that was uploaded without another one.
            self.send_header("x-amz-checksum-crc64nvme", _checksum(path, listed.etag))
            self.send_header("x-amz-checksum-type", "FULL_OBJECT")
        if part:
            place = f"bytes {wanted.start}-{wanted.stop - 1}/{listed.size}"
            self.send_header("Content-Range", place)
        self.end_headers()
        if body:
            with path.open("rb") as file:
                self.connection.sendfile(file, wanted.start, len(wanted))

    def _send(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(HTTPStatus.OK)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _listed(path: Path) -> Listed:
    status = path.stat()
    identity = f"{path.name}-{status.st_size}-{status.st_mtime_ns}"
    etag = hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()
    return Listed(key=path.name, size=status.st_size, etag=etag)


@cache
def _checksum(path: Path, _etag: str) -> str:
    found = Checksum("crc64nvme", b"")
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Readers hang up when they have enough."""


def main() -> None:
    """Serve."""
    _Handler.serves = sys.argv[1]
    with _Server(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
