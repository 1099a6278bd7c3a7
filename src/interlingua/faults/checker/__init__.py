"""Checker that plays a client of a gateway and judges the responses."""
