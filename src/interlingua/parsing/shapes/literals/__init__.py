"""Shapes: calls with literal values, such as Python calls."""
