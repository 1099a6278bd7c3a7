"""End-to-end tests with real clients, each with its own tool loop, through one gateway: `python -m e2e`."""
