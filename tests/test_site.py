"""The documentation site: every link leads to a file, and every study has a page with an interpretation."""

import importlib.util
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.gallery import document
from trialogue_lab.ledger.pages import study_pages

pytest.importorskip("mkdocstrings", reason="building the site takes mkdocs: install trialogue[test]")

ROOT = Path(__file__).parents[1]
PAGES = {
    "findings.md": """# Findings

Of no study.

The flagship (`coin`, preset `night`):

| a | table |
|---|---|

See [decisions](decisions.md#one) and [elsewhere](https://example.org).

## Coins *and* dice

(`trialogue run dice --preset night`, `card`):

- Both fall.
- A third (`trialogue run
  urn`) is [empty](../examples/urn.py).
""",
    "index.md": "# Start\n\nBoth `dice` and `ring`, in a ![picture](../lab/results/ring.svg).\n",
}
STUDIES = ("card", "coin", "dice", "ring", "urn")


@pytest.fixture(scope="module")
def site(tmp_path_factory, ledger_entries):
    """Build the site in strict mode, as `make docs` does.

    Figures and the gallery take a minute and have separate tests, so placeholders replace them. Links do not depend on
    the search index, the line breaks of signatures and the colours of code, which take a third of the time.
    """
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocstrings_handlers.python._internal import rendering

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
        monkeypatch.setattr("trialogue_lab.ledger.ledger", lambda *_: ledger_entries)
        monkeypatch.setattr(document, "render_gallery", lambda _: "<html></html>")
        monkeypatch.setattr(study_pages, "svg", lambda *_: "<svg></svg>")
        monkeypatch.setattr(rendering, "_get_formatter", lambda: lambda code, _: code)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins["material/search"].config.enabled = False
        config.mdx_configs["pymdownx.highlight"] = {"use_pygments": False}
        build(config)
    return folder


def test_every_study_has_a_page(site):
    pages = {name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")}
    assert pages == {path.parent.name for path in site.glob("studies/*/index.html")}


def test_every_internal_link_leads_to_a_file(site):
    """MkDocs does not check links to files that are not pages, for example examples and figures."""
    broken_links, links = set(), 0
    for page in site.rglob("*.html"):
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8")):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc or not parts.path:
                continue
            path = unquote(parts.path)
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            links += 1
            if not (target / "index.html" if target.is_dir() else target).is_file():
                broken_links.add(f"{page.relative_to(site)}: {link}")
    assert not broken_links
    assert links > 1000


def test_every_page_of_a_study_has_an_interpretation(site):
    for page in site.glob("studies/*/index.html"):
        means = page.read_text(encoding="utf-8").partition('<h2 id="what-it-means">')[2]
        assert len(re.sub(r"<[^>]*>", "", means.partition("</article>")[0])) > 200, page


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "coin",
            "From [Findings](../findings.md#findings):\n\nThe flagship (`coin`, preset `night`):\n\n"
            "| a | table |\n|---|---|\n\n"
            "See [decisions](../decisions.md#one) and [elsewhere](https://example.org).",
        ),
        (
            "dice",
            "From [Coins *and* dice](../findings.md#coins-and-dice), with [card](card.md), [urn](urn.md):\n\n"
            "(`trialogue run dice --preset night`, `card`):\n\n- Both fall.\n"
            "- A third (`trialogue run\n  urn`) is [empty](../examples/urn.py).",
        ),
        (
            "urn",
            "From [Coins *and* dice](../findings.md#coins-and-dice):\n\n"
            "- A third (`trialogue run\n  urn`) is [empty](../examples/urn.py).",
        ),
        (
            "ring",
            "From [Start](../index.md#start), with [dice](dice.md):\n\n"
            "Both `dice` and `ring`, in a ![picture](../lab/results/ring.svg).",
        ),
    ],
)
def test_the_interpretation_of_a_study_is_quoted_from_a_page(name, expected, hook):
    assert hook.what_it_means(name, PAGES, STUDIES) == f"\n## What it means\n\n{expected}\n"


def test_names_of_studies_become_links(hook):
    text = "# `coin`\n\n`coin`, [`dice`](x.md) and `trialogue gallery`\n\n```sh\n`coin`\n```\n"
    linked = text.replace("\n\n`coin`,", "\n\n[`coin`](studies/coin.md),")
    linked = linked.replace("`trialogue gallery`", "[`trialogue gallery`](gallery.html)")
    assert hook.link_generated_pages(text, STUDIES) == linked


def test_a_study_without_an_interpretation_is_reported(hook):
    with pytest.raises(InputError, match=r"study='die': neither findings.md nor index.md says what it found"):
        hook.what_it_means("die", PAGES, STUDIES)
