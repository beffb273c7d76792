"""The contender that only downloads: the same object with boto3, read to its end and thrown away."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import dataclass
from subprocess import TimeoutExpired
from typing import Any

from benchmarks.contender import BenchmarkError, Job, end_all, started, tail
from benchmarks.s3_server import BUCKET

CHUNK_BYTES = 1024 * 1024
MOST_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One process, one request. It gets nothing into Kafka, so it measures itself."""

    slots: int = 1

    def run(self, job: Job) -> dict[str, float]:
        """Download *job*'s sample; seconds, CPU seconds and the most bytes of memory that it took.

        Raises BenchmarkError when it fails.
        """
        path = job.sample.path
        command = [sys.executable, "-m", "benchmarks.download", job.store, path.name]
        process = started(command, job)
        try:
            code = process.wait(MOST_SECONDS)
        except TimeoutExpired as error:
            raise BenchmarkError("The download takes too long.") from error
        finally:
            end_all([process])
        if code:
            raise BenchmarkError(f"The download ended with exit code {code}.\n{tail(job.log)}")
        found = json.loads(job.log.read_text().splitlines()[-1])
        if found["bytes"] != path.stat().st_size:
            raise BenchmarkError(f"The download has {found['bytes']:,} bytes.")
        return found


def downloaded(url: str, key: str) -> dict[str, float]:
    """What it took to download *key*."""
    import boto3  # noqa: PLC0415 - only this process needs it
    from botocore.config import Config  # noqa: PLC0415

    client: Any = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="benchmark",
        aws_secret_access_key="benchmark",
        config=Config(s3={"addressing_style": "path"}),
    )
    began, cpu = time.monotonic(), time.process_time()
    body = client.get_object(Bucket=BUCKET, Key=key)["Body"]
    size = 0
    while chunk := body.read(CHUNK_BYTES):
        size += len(chunk)
    took = time.monotonic() - began
    return {
        "bytes": size,
        "seconds": took,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    print(json.dumps(downloaded(sys.argv[1], sys.argv[2])))
