"""Scenarios of the faults, grouped by topic."""

from __future__ import annotations
