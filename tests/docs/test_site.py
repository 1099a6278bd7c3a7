"""The documentation as a site: every page has a place, every link leads somewhere, nothing comes from another host."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.diagrams import draw
from docs.site_hooks import PROJECT_PAGES
from tests.support.browser import open_browser

ROOT = Path(__file__).parents[2]


def build_site(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout as `make site` does."""
    recipe = re.search(r"-m (mkdocs build .*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert recipe is not None
    command = [sys.executable, "-m", *recipe[1].split(), "--site-dir", str(folder)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", draw.DIAGRAMS)
def test_diagrams_are_up_to_date(name: str) -> None:
    assert (draw.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == draw.DIAGRAMS[name]().svg(), "run `make docs`"


def test_every_page_is_in_the_navigation() -> None:
    navigation = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert navigation == pages | set(PROJECT_PAGES.values())


class Loads(HTMLParser):
    """Addresses from which a page loads scripts, styles, pictures and frames."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(values.get("src") or "")
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.addresses.append(values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build_site(ROOT, folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
def test_site_is_built_without_warnings_and_loads_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        reader = Loads()
        reader.feed(page.read_text(encoding="utf-8"))
        assert not [address for address in reader.addresses if "//" in address], page


@pytest.mark.slow
def test_search_has_every_page(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    for page in ("concepts.html", "guides/gateway.html", "reference/dialects.html", "project/architecture.html"):
        assert f'"{page}"' in index


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "guides/choose-a-provider", "attribution", "reference/settings"])
def test_pages_fit_a_phone_and_do_not_break_options(site: Path, name: str) -> None:
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        codes = page.locator("p code, li code").evaluate_all(
            "codes => codes.filter(code => code.getClientRects().length > 1).map(code => code.textContent)"
        )
        assert not [code for code in codes if " " not in code and len(code) < 28]


@pytest.mark.slow
def test_copied_commands_have_no_prompt_and_no_output(site: Path) -> None:
    with open_browser() as browser:
        page = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
        page.goto((site / "guides" / "new-dialect.html").as_uri())
        block = page.locator(".highlight", has_text="draft acme.jinja")
        block.hover()
        block.locator(".md-clipboard, .md-code__button").first.click()
        copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "interlingua dialects draft acme.jinja > acme.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("../src/gone.py", "docs/concepts.md links to src/gone.py, which does not exist"),
        ("guides/gone.md", "docs/concepts.md links to docs/guides/gone.md, which does not exist"),
        ("guides/gateway.md#gone", "does not contain an anchor '#gone'"),
    ],
)
def test_link_that_leads_nowhere_fails(tmp_path: Path, link: str, message: str) -> None:
    for name in ("docs", "mkdocs.yml", *PROJECT_PAGES):
        source = ROOT / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path / name)
    page = tmp_path / "docs" / "concepts.md"
    page.write_text(page.read_text(encoding="utf-8") + f"\n[gone]({link})\n", encoding="utf-8")
    built = build_site(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert message in built.stdout + built.stderr
