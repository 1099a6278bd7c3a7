"""Captures of exchanges: their file format, and the translation of a captured reply once more."""
