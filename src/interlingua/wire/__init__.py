"""The protocols that clients and upstreams speak, one file or package each, and SSE that carries them."""
