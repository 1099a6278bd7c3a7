"""Parsing of native text into guarded events."""
