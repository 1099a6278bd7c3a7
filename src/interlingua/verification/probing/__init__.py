"""Requests to a provider: sending, and what they show about the server and the model."""
