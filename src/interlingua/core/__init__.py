"""Neutral model: replies, requests, tools, options, findings."""
