"""Transports for the official SDKs."""
