"""Memory that all workers of a gateway share, so that they act as one gateway."""
