"""Recording and replay of exchanges by the gateway."""
