"""Inspection of captured exchanges: what the inspector page shows, computed without I/O."""
