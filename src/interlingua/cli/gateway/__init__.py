"""Commands that run the gateway: serve, run, start, stop, status, logs."""
