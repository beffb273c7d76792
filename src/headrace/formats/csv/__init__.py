"""Rows of separated fields."""
