"""HTTP gateway between agents and upstreams. Apart from `cli`, the only package with sockets, clocks and randomness."""
