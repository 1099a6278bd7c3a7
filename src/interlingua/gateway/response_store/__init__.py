"""Stored responses: what clients of the Responses API continue, fetch and delete by id."""
