"""Shapes: layouts of calls that several dialects share. Each one parses its layout incrementally, and writes it."""
