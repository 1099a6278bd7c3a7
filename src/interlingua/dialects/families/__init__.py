"""Dialect data: one file per model family."""
