"""Processes of the gateway: server, supervisor, workers, sidecar."""
