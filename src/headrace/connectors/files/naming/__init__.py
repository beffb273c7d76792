"""What names of files tell: which files are read, and topic, partition and key of their records."""
