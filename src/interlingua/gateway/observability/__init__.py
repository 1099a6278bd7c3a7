"""Log, metrics, traces and captures."""
