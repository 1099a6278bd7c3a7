"""Routing: model id to upstream, model and dialect."""
