"""Kafka's record batches as Arrow columns (message formats 0 to 2), and columns as record batches (format 2).

Fetch answer's bytes -> headers.batch_headers -> decoding.decoded -> pyarrow.RecordBatch
RecordColumns -> encoding.encoded -> UnstampedBatch
Fetched batches -> forwarding.BatchForwarding, which does both where it must -> UnstampedBatch
UnstampedBatch -> producer_batch.stamped -> Produce request's bytes
"""
