"""The command line: `headrace`, one file for each group of commands."""
