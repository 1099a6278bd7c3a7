"""Translation between wires, without I/O: streamed replies, whole replies, requests."""
