"""Drafting of a dialect from a chat template."""
