"""The herder of a worker that shares its connectors with no other: one thread decides, runs do the work."""
