"""Helpers without domain knowledge: JSON text, JSON Schema, YAML."""
