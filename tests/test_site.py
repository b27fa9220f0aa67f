"""The site of documentation: every link and reference of its pages leads somewhere, and every study has a page."""

from pathlib import Path

import pytest

from trialogue import studies
from trialogue.gallery import document
from trialogue.ledger.pages import study_pages

pytest.importorskip("mkdocstrings", reason="building the site takes mkdocs: install trialogue[test]")

ROOT = Path(__file__).parents[1]


def test_the_site_is_built_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strictly, as by `make docs`; the pictures and the gallery, which take a minute, have tests of their own."""
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.setattr(document, "render_gallery", lambda _: "<html></html>")
    monkeypatch.setattr(study_pages, "svg", lambda *_: "<svg></svg>")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    build(config)
    pages = {name for name, module in studies.modules().items() if module.startswith("trialogue.")}
    assert pages == {path.parent.name for path in tmp_path.glob("studies/*/index.html")}
