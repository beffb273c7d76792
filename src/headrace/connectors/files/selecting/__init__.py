"""Which files are read, and how many of them at once."""
