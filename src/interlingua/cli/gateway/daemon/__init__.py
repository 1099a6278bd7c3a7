"""Background gateways: launcher, state files, log reader and health checks for `start`, `stop`, `status`, `logs`."""
