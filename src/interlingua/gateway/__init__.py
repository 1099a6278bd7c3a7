"""The gateway: one process between agents and upstreams. The only package with sockets, clocks and chance."""
