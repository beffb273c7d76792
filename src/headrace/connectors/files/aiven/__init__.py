"""Aiven's S3 source, run by the connector ``files``: its keys, its names of partitions, its order."""
