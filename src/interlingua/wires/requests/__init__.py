"""Helpers to read and write request bodies, shared by the wires."""
