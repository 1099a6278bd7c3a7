"""Scripted upstream that plays the faults."""
