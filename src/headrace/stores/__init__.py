"""Stores of objects behind one small protocol: local disk, S3 and what speaks like it."""
