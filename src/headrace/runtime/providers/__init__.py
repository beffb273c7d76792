"""Configuration providers: ``${provider:path:key}`` stands for a value that is kept somewhere else."""
