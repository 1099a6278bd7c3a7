"""Checker: a client that sends requests to a gateway and rates the responses."""
