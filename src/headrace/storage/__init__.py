"""What survives a restart: offsets, configurations, statuses; in memory, in SQLite, in Kafka."""
