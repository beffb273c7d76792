"""The settings of the brokers of tests."""

from __future__ import annotations

# A transaction that has outlived its time is ended at once, and not within ten seconds.
PROPERTIES = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # Compacted topics are looked at every second, and not every 15.
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.threads": "2",
}
