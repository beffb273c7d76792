"""Google Cloud Storage, by its REST interface."""
