"""Files on local disk become records: JSONL, CSV and plain lines, plain or compressed."""
