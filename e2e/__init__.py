"""Real clients, each with its own tool loop, through one gateway: `python -m e2e`."""
