"""Tools that the gateway runs itself, within one request of the client."""
