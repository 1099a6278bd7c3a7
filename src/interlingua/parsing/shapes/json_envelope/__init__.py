"""Shape: calls as JSON objects with a name and arguments."""
