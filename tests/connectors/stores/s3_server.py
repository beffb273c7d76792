"""An S3 server on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def s3_server() -> Generator[int]:
    """The port of a server while it runs; any credentials will do."""
    # Parts of copies are that small in tests; it is read once, at the import.
    os.environ.setdefault("S3_UPLOAD_PART_MIN_SIZE", "256")
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()[1]
    finally:
        server.stop()
