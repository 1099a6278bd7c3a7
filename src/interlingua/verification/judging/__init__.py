"""Judging of replies: pure functions from a recorded reply and its sample to failures."""
