"""One client request: prepare it, send it to an upstream with failover, relay the reply."""
