"""HTTP client for upstreams: connections, errors, retry policy."""
