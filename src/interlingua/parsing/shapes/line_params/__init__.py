"""Shape: calls with one line per param."""
