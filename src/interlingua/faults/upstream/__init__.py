"""Scripted upstream that injects the faults."""
