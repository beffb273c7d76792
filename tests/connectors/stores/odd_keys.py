"""Keys that some stores cannot have."""

GOOGLE_REFUSES = (".", "..")
"""No address can name them."""
AZURE_REFUSES = (
    "back\\slash",
    "control\x01\x1f\r\t",
    *("a/../b", "a/./b", "../up", "..", "."),
    *("file.", "folder./file", "file.../"),
)
"""Azure would take them for others."""
