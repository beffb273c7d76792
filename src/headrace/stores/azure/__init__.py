"""Azure Blob Storage, by its REST interface."""
