"""Inspector: records the exchanges of all workers in a process of its own, and serves a web page that shows them."""
