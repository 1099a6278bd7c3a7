"""Samples: the built-in set, and sets of other verifiers read from files."""
