"""Settings: schema, loading, overrides, checks, redaction."""
