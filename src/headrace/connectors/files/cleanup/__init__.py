"""What is done to a file once all its records are committed."""
