"""Files on local disk: listed, looked at, known again, opened."""
