"""A Java runtime and pinned sets of jars, on any machine that has Python."""
