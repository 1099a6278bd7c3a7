"""The table of faults: each row, and the scenarios that play it."""

from __future__ import annotations
