"""MkDocs hook that adds a page for every study, the gallery and the quickstart notebook to the documentation site.

The page of a study ends with an interpretation, quoted from the pages that mention the study.
"""

import json
import re
from collections.abc import Collection, Mapping
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown.extensions.toc import slugify
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.gallery.document import render_gallery
from trialogue_lab.ledger import ledger
from trialogue_lab.ledger.pages.study_pages import (
    cited_documents,
    studies_page,
    study_page,
    study_pictures,
)

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(?:(?<=\]\()|(?<=\]: ))\.\./((?:\.\./)*(?:examples|lab/results|lab/src|src)/[^)#\n]+)")
"""A link to a file outside the folder of the documentation."""
RELATIVE = re.compile(r"(?<=\]\()(?![a-z]+:|[/#])")
"""The start of a link that is relative to its page."""
NOTEBOOK = re.compile(r"(?<=\]\()([\w./]*quickstart)\.ipynb")
"""A link to the quickstart notebook."""
NOTEBOOK_PAGE = "tutorials/quickstart.md"
LINKED = ("findings.md", "index.md", "coverage.md", "verdict-history.md", "bibliography.md")
"""Pages of which the names of studies become links. The repository has no file to link, so only the site has these."""
SPEAKING = ("findings.md", "index.md")
"""Pages with interpretations of studies, in order of precedence."""


def on_config(config: Any) -> Any:
    """List every study of the package in the navigation, grouped by publication."""
    groups: dict[str, list[dict[str, str]]] = {}
    for name in _names():
        groups.setdefault(_group(studies.find(name)), []).append({name: f"studies/{name}.md"})
    pages = [{group: groups[group]} for group in sorted(groups, key=_GROUPS.index)]
    for section in config.nav:
        for entry in section.get("Laboratory", ()):
            if "Studies" in entry:
                entry["Studies"] = ["studies/index.md", *pages]
    return config


_CHAPTERS = {"2": "Thesis: training", "3": "Thesis: inference", "4": "Thesis: masked models"}
_TITLES = {
    "clones": "A distributional simplicity bias",
    "potts": "Potts chains",
    "type-signature": "Limitations of autoregressive models",
    "memorization": "Memorization in transformers",
}
_GROUPS = [*_CHAPTERS.values(), *_TITLES.values(), "Papers on sampling", "Our own questions"]


def _group(study: Any) -> str:
    """Return the title of the group of a study: its publication, or the chapter of the thesis."""
    cited = next(iter(cited_documents(study)), None)
    if cited == "thesis":
        chapter = re.search(r"sections? (\d)", study.source, re.IGNORECASE)
        return _CHAPTERS[chapter[1] if chapter else "3"]
    return "Our own questions" if cited is None else _TITLES.get(cited, "Papers on sampling")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the studies with their figures, the gallery, and the quickstart as a page."""
    names = _names()
    entries = ledger([studies.find(name) for name in names], ROOT / "lab" / "results")
    spoken = {page: files.src_uris[page].content_string for page in SPEAKING}
    try:
        pages = {
            "studies/index.md": studies_page(entries),
            "gallery.html": render_gallery(ROOT / "lab" / "results"),
        }
        for entry in entries:
            meaning = what_it_means(entry.study.name, spoken, names)
            pages[f"studies/{entry.study.name}.md"] = study_page(entry) + meaning
            for name, picture in study_pictures(entry).items():
                pages[f"studies/{entry.study.name}/{name}"] = picture
    except InputError as error:
        raise PluginError(f"the site cannot be built: {error}") from error
    notebook = json.loads((ROOT / "docs" / "tutorials" / "quickstart.ipynb").read_text(encoding="utf-8"))
    pages[NOTEBOOK_PAGE] = notebook_page(notebook)
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    linked = {
        path.lstrip("./")
        for page in files.documentation_pages()
        for path in OUTSIDE.findall(page.content_string)
    }
    for path in sorted(linked):
        # `exclude_docs` excludes Python files of this folder. It must not exclude linked files.
        copy = File.generated(config, path, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.INCLUDED)
        files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Redirect links to outside files to their copies on the site, and link names of studies to their pages."""
    del config, files
    if page.file.src_uri != NOTEBOOK_PAGE:
        markdown = NOTEBOOK.sub(r"\1.md", markdown)
    if page.file.src_uri in LINKED:
        markdown = link_generated_pages(markdown, _names())
    return markdown if page.file.src_uri.startswith("studies/") else OUTSIDE.sub(r"\1", markdown)


def on_post_build(config: Any) -> None:
    """Refuse a site with a broken internal link. MkDocs does not check links to files that are not pages."""
    if broken := broken_links(Path(config.site_dir)):
        raise PluginError(f"links of the site lead to no file: {', '.join(broken)}")


def broken_links(site: Path) -> list[str]:
    """Return the internal links of all pages in a folder that lead to no file, each after its page."""
    broken = set()
    for page in site.rglob("*.html"):
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8")):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc or not parts.path:
                continue
            path = unquote(parts.path)
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            if not (target / "index.html" if target.is_dir() else target).is_file():
                broken.add(f"{page.relative_to(site)}: {link}")
    return sorted(broken)


def notebook_page(notebook: Mapping[str, Any]) -> str:
    """Return a Jupyter notebook as Markdown, with the printed output after each cell."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def link_generated_pages(markdown: str, names: Collection[str]) -> str:
    """Link each name of a study, and `trialogue gallery`, between backticks to the page that the site generates.

    Headings and code blocks are unchanged.
    """
    pages = {name: f"studies/{name}.md" for name in names} | {"trialogue gallery": "gallery.html"}
    named = re.compile(rf"(?<!\[)`({'|'.join(sorted(map(re.escape, pages), key=len, reverse=True))})`(?!\])")
    parts = re.split(r"(^```.*?^```$|^#[^\n]*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = (named.sub(lambda found: f"[{found[0]}]({pages[found[1]]})", part) for part in parts[::2])
    return "".join(parts)


def what_it_means(name: str, spoken: Mapping[str, str], names: Collection[str]) -> str:
    """Return the last section of a study's page, quoted from the first page that mentions the study.

    Every section that names the study between backticks is quoted: from the paragraph with the name to its end, or only
    the list items with the name.

    Args:
        name: Name of the study.
        spoken: Texts of the pages, by file name.
        names: Names of all studies.

    Raises:
        InputError: If no page names the study.
    """
    for page, text in spoken.items():
        said = ["## What it means"]
        for section in re.split(r"^(?=#{1,3} )", text, flags=re.MULTILINE):
            if excerpt := _excerpt(section, name):
                title = section.partition("\n")[0].lstrip("# ")
                others = [f"[{one}]({one}.md)" for one in names if one != name and _speaks(excerpt, one)]
                source = f"From [{title}](../{page}#{slugify(title, '-')})"
                said += [f"{source}, with {', '.join(others)}:" if others else f"{source}:"]
                said += [RELATIVE.sub("../", OUTSIDE.sub(r"\1", excerpt))]
        if len(said) > 1:
            return "\n" + "\n\n".join(said) + "\n"
    raise InputError("study", name, f"neither {' nor '.join(spoken)} says what it found: name it there")


def _excerpt(section: str, name: str) -> str:
    """Return the part of a section about the study `name`, or an empty text if it does not name the study."""
    paragraphs = section.strip().split("\n\n")[1:]
    for at, paragraph in enumerate(paragraphs):
        if paragraph.startswith("- "):
            items = re.split(r"^(?=- )", paragraph, flags=re.MULTILINE)
            if named := [item.rstrip() for item in items if _speaks(item, name)]:
                return "\n".join(named)
        elif _speaks(paragraph, name):
            return "\n\n".join(paragraphs[at:])
    return ""


def _speaks(text: str, name: str) -> bool:
    return re.search(rf"`(?:trialogue\s+run\s+)?{re.escape(name)}(?:\s--[^`]*)?`", text) is not None


def _names() -> list[str]:
    return [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]
