"""The documentation site: every link leads to a file, and every study has a page with an interpretation."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.gallery import document
from trialogue_lab.ledger.pages import study_pages

pytest.importorskip("mkdocstrings", reason="building the site takes mkdocs: install trialogue[test]")

from mkdocs.exceptions import PluginError

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
BUILT_IN = [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_site_has_a_page_for_every_study(tmp_path, ledger_entries):
    """Build the site in strict mode, as `make docs` does, which fails if an internal link is broken.

    Figures and the gallery take a minute and have separate tests, so placeholders replace them. Links do not depend on
    the search index, the line breaks of signatures and the colours of code, which take a third of the time.
    """
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocstrings_handlers.python._internal import rendering

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
        monkeypatch.setattr("trialogue_lab.ledger.ledger", lambda *_: ledger_entries)
        monkeypatch.setattr(document, "render_gallery", lambda _: "<html></html>")
        monkeypatch.setattr(study_pages, "svg", lambda *_: "<svg></svg>")
        monkeypatch.setattr(rendering, "_get_formatter", lambda: lambda code, _: code)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
        config.plugins["material/search"].config.enabled = False
        config.mdx_configs["pymdownx.highlight"] = {"use_pygments": False}
        build(config)
    assert set(BUILT_IN) == {path.parent.name for path in tmp_path.glob("studies/*/index.html")}


def test_broken_links_of_a_site_are_reported(hook, tmp_path):
    links = ("/a.html#x", "b/", "b", "b/?q=1", "https://example.org/x", "#top", "d%20&amp;e.svg")
    broken = ("/b.html", "../a.html", "b/f.png", "c/", "d%20e.svg")
    for folder in ("b", "c"):
        (tmp_path / folder).mkdir()
    (tmp_path / "b" / "index.html").write_text('<a href="../a.html">a</a><a href="a.html">no</a>')
    (tmp_path / "d &e.svg").touch()
    anchors = (f'<a href="{link}">a</a><img src="{link}">' for link in (*links, *broken))
    (tmp_path / "a.html").write_text("\n".join(anchors))
    expected = [*(f"a.html: {link}" for link in broken), "b/index.html: a.html"]
    assert hook.broken_links(tmp_path) == sorted(expected)
    with pytest.raises(PluginError, match=r"lead to no file: a.html: \.\./a.html, "):
        hook.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_study_has_an_interpretation(name, hook):
    texts = {page: (ROOT / "docs" / page).read_text(encoding="utf-8") for page in hook.SPEAKING}
    quoted = hook.what_it_means(name, texts, BUILT_IN)
    assert len(re.sub(r"^From .*|<[^>]*>", "", quoted, flags=re.MULTILINE)) > 200


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
