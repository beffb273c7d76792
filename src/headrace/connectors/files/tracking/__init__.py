"""What is remembered of files: an entry for each, or a mark and the entries above it."""
