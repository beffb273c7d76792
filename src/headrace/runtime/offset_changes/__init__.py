"""Offsets that people read, alter, reset, preset and restore; each change is done as a whole, or not at all."""
