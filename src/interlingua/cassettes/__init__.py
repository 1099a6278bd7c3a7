"""Cassettes: recorded exchanges with models that replay on every API, without a model, a key or a network."""
