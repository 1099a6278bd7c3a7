"""Upstreams that fail in every way that is known, and whether a gateway in front of them does what is right."""
