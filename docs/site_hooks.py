"""Hooks of mkdocs: pages from the top folder of the repository, links to its files, and no script from other hosts.

The pages of `docs/` are also read in the repository, so their links lead to files there. In the site, a link to a page
leads to that page; a link to any other file of the repository is shown as its path.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.plugins.repository_links")

ROOT = Path(__file__).parents[1]
PROJECT_PAGES = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
}
"""Pages of the site by their files in the top folder of the repository."""
SHIM_URL = "https://unpkg.com/iframe-worker/shim"
"""Script of Material's plugin `offline`: with it, the search works in pages that are opened as files."""
SHIM_FILE = "vendor/iframe-worker-1.0.4.js"
_REPOSITORY_PATHS = {page: path for path, page in PROJECT_PAGES.items()}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_SHORT_CODE = re.compile(r"<code>(?=[^<\s]{1,28}</code>)")
_FENCED_BLOCK = re.compile(r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)`*$", re.M | re.S)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's top folder."""
    for path, page in PROJECT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Point the links of a page at pages of the site."""
    parts, end = [], 0
    for block in [*_FENCED_BLOCK.finditer(markdown), None]:
        start = len(markdown) if block is None else block.start()
        parts.append(_LINK.sub(lambda link: _site_link(link, page.file.src_uri), markdown[end:start]))
        if block is not None:
            parts.append(block[0])
            end = block.end()
    return "".join(parts)


def on_page_content(html: str, **_: object) -> str:
    """Keep short code on one line: browsers break `--json` behind its hyphens."""
    return _SHORT_CODE.sub('<code class="short">', html)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Load the script from the site itself, which needs no network then."""
    return output.replace(SHIM_URL, posixpath.relpath(SHIM_FILE, posixpath.dirname(page.file.dest_uri) or "."))


def on_post_template(output_content: str, **_: object) -> str:
    """Do the same in the page for addresses that do not exist, which is in the top folder."""
    return output_content.replace(SHIM_URL, SHIM_FILE)


def _site_link(link: re.Match[str], source: str) -> str:
    text, target, anchor = link["text"], link["target"], link["anchor"] or ""
    if re.match(r"[a-z]+:", target):
        return link[0]
    source_path = _REPOSITORY_PATHS.get(source, f"docs/{source}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source_path), target))
    if not (ROOT / path).exists():
        log.warning("%s links to %s, which does not exist", source_path, path)
    page = PROJECT_PAGES.get(path) or path.removeprefix("docs/")
    if path in PROJECT_PAGES or (path.startswith("docs/") and (ROOT / path).is_file() and not path.endswith(".py")):
        return f"[{text}]({posixpath.relpath(page, posixpath.dirname(source) or '.')}{anchor})"
    return text if path.strip("/") in text else f"{text} (`{path}`)"
