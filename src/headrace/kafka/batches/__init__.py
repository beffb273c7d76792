"""Kafka's record batches as Arrow columns (message formats 0 to 2).

Fetch answer's bytes -> headers.batch_headers -> decoding.decoded -> pyarrow.RecordBatch
"""
