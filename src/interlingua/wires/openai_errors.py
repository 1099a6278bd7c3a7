"""Errors of both wires of OpenAI: types, codes, JSON body and its schema."""

from __future__ import annotations

from interlingua.wires.base import Json
from interlingua.wires.http_api import HttpApi, HttpError
from interlingua.wires.openapi import TEXT, Schema, error_type_schema, nullable, object_schema

__all__ = ["ERROR_TYPES", "SERVER_ERROR_TYPE", "error_body", "error_schema"]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
SERVER_ERROR_TYPE = "server_error"
_REJECTION_CODES = {
    401: "invalid_api_key",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
"""Code of a rejected request, by HTTP status."""


def error_body(error: HttpError) -> Json:
    code = error.code or (_REJECTION_CODES.get(error.status) if error.is_rejection else None)
    return {"error": {"message": error.message, "type": error.type, "param": error.param or None, "code": code or None}}


def error_schema(api: HttpApi) -> Schema:
    """Return the JSON Schema of an error body."""
    error = {
        "message": TEXT,
        "type": error_type_schema(api.all_error_types()),
        "param": nullable("string"),
        "code": {"type": ["string", "integer", "null"]},
    }
    return object_schema({"error": object_schema(error, "message", "type")}, "error")
