"""Downloads of one exchange: a page of its own, the capture, a cassette, a row of the fixtures, a report, a command."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from interlingua.captures.capture_format import encode_capture
from interlingua.cassettes.captured_exchange import record_captured
from interlingua.cassettes.cassette_files import cassette_name
from interlingua.cassettes.cassette_format import write_cassette
from interlingua.gateway.inspector.analyses import Analyses, versions
from interlingua.inspection.exports import bug_report, curl_command, fixture_row

__all__ = ["EXPORTS", "Export", "export_exchange"]

EXPORTS = ("html", "capture", "cassette", "fixture", "report", "curl", "curl-upstream")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Export(msgspec.Struct, frozen=True):
    """A file to download."""

    file_name: str
    content_type: str
    data: bytes


def export_exchange(analyses: Analyses, id: str, format: str, options: Mapping[str, str], base_url: str) -> Export:
    """Return an exchange in one of the formats.

    Args:
        analyses: The analyses.
        id: The exchange.
        format: One of `EXPORTS`.
        options: `name`: name of a row of the fixtures.
        base_url: URL of the gateway.

    Raises:
        InterlinguaError: The exchange does not exist, or has not what the format needs.
    """
    captured = analyses.load(id)
    stem = _UNSAFE.sub("-", id)[:80] or "exchange"
    if format == "html":
        from interlingua.gateway.inspector.html_export import export_page

        return Export(f"{stem}.html", "text/html", export_page(analyses, id))
    if format == "capture":
        return Export(f"{stem}.jsonl", "application/x-ndjson", encode_capture(captured))
    if format == "cassette":
        recorded = record_captured(captured)
        return Export(cassette_name(recorded), "application/yaml", write_cassette([recorded]).encode())
    if format == "fixture":
        row = fixture_row(captured, options.get("name") or f"captured {stem[-8:]}")
        return Export(row.file, "text/plain", f"# Append to tests/data/fixtures/{row.file}.\n\n{row.text}".encode())
    if format == "report":
        return Export(f"{stem}.md", "text/markdown", bug_report(captured, versions()).encode())
    command = curl_command(captured, base_url, to_upstream=format == "curl-upstream")
    return Export(f"{stem}.sh", "text/x-shellscript", f"{command}\n".encode())
