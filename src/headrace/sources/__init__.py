"""The source framework: what turns native objects into batches of records that can be resumed anywhere."""
