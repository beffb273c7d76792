"""Which Kafka partitions there are, and where to start each (FLIP-288)."""
