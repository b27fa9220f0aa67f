"""The site of documentation: every link and reference of its pages leads somewhere, and every study has a page."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from trialogue import studies
from trialogue.gallery import document
from trialogue.ledger.pages import study_pages

pytest.importorskip("mkdocstrings", reason="building the site takes mkdocs: install trialogue[test]")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly, as by `make docs`.

    Without the pictures and the gallery, which take a minute and have tests of their own.
    """
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
        monkeypatch.setattr(document, "render_gallery", lambda _: "<html></html>")
        monkeypatch.setattr(study_pages, "svg", lambda *_: "<svg></svg>")
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_every_study_has_a_page(site: Path) -> None:
    pages = {name for name, module in studies.modules().items() if module.startswith("trialogue.")}
    assert pages == {path.parent.name for path in site.glob("studies/*/index.html")}


def test_every_link_within_the_site_leads_to_a_file(site: Path) -> None:
    """Those to files that a page is not, such as examples and pictures, are none that mkdocs looks after."""
    dead, followed = set(), 0
    for page in site.rglob("*.html"):
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8")):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc or not parts.path:
                continue
            path = unquote(parts.path)
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            followed += 1
            if not (target / "index.html" if target.is_dir() else target).is_file():
                dead.add(f"{page.relative_to(site)}: {link}")
    assert not dead
    assert followed > 1000
