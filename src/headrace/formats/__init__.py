"""Extractors: blocks of bytes in, columns of records out, with the position of every record."""
