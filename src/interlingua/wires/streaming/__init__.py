"""Streaming: server-sent events, chunks, deltas."""
