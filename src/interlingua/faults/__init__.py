"""Fault injection: a scripted upstream with known faults, and a checker for gateways in front of it."""
