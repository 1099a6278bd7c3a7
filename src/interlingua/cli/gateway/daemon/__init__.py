"""The gateway in the background: what is known of each one, and the commands `start`, `stop`, `status` and `logs`."""
