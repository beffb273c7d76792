"""The only importer of the Kafka client: sending, transactions, admin, reading compacted topics."""
