"""Runs: all samples of a set against one upstream, with a log, metrics, costs and a reference."""
