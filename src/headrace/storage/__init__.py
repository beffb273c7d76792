"""What survives a restart: configurations, statuses, changes; in memory and in SQLite."""
