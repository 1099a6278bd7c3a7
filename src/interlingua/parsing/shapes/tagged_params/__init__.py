"""Shape: one XML-like element per parameter."""
