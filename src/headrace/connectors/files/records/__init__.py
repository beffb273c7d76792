"""What each record tells of its file: headers, fields, the last one, and the one schema of all."""
