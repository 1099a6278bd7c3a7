"""Shape: markers around a header and JSON arguments."""
