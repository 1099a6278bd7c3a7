"""JSON Schema: resolving, coercion of values, validation."""
