"""What the site of documentation adds while it is built, from the rows in `results/`: a page a study, and the gallery.

A study's page ends with what it means, in the words of the pages that speak of it.

A hook of mkdocs (`mkdocs.yml` names it).
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from trialogue_lab import studies
from trialogue.errors import InputError
from trialogue_lab.gallery.document import render_gallery
from trialogue_lab.ledger import ledger
from trialogue_lab.ledger.pages.study_pages import studies_page, study_page, study_pictures

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(?<=\]\()\.\./((?:examples|lab/results)/[^)#]+)")
"""A link of a page to a file that lies beside the folder of the documentation."""
RELATIVE = re.compile(r"(?<=\]\()(?![a-z]+:|[/#])")
"""Where a link begins that is relative to its page."""
SPEAKING = ("findings.md", "index.md")
"""The pages that say what studies found, those first that are asked first."""


def on_config(config: Any) -> Any:
    """List every study of the package in the navigation."""
    pages = [{"Overview": "studies/index.md"}, *({name: f"studies/{name}.md"} for name in _names())]
    for section in config.nav:
        if "Studies" in section:
            section["Studies"] = pages
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the studies, and their pictures."""
    names = _names()
    entries = ledger([studies.find(name) for name in names], ROOT / "lab" / "results")
    spoken = {page: files.src_uris[page].content_string for page in SPEAKING}
    try:
        pages = {"studies/index.md": studies_page(entries), "gallery.html": render_gallery(ROOT / "lab" / "results")}
        for entry in entries:
            meaning = what_it_means(entry.study.name, spoken, names)
            pages[f"studies/{entry.study.name}.md"] = study_page(entry) + meaning
            for name, picture in study_pictures(entry).items():
                pages[f"studies/{entry.study.name}/{name}"] = picture
    except InputError as error:
        raise PluginError(f"the site cannot be built: {error}") from error
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    linked = {path for page in files.documentation_pages() for path in OUTSIDE.findall(page.content_string)}
    for path in sorted(linked):
        # Included whatever it is: `exclude_docs` speaks of this folder, whose own Python is no page.
        copy = File.generated(config, path, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.INCLUDED)
        files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links to files beside the folder of the documentation to the site's copies of them."""
    del config, files
    return markdown if page.file.src_uri.startswith("studies/") else OUTSIDE.sub(r"\1", markdown)


def what_it_means(name: str, spoken: Mapping[str, str], names: Collection[str]) -> str:
    """The last section of a study's page: what the first of the pages `spoken` that speaks of the study says of it.

    It is taken from every section that names the study between backticks: from the paragraph that does to the end, or
    the items of a list that do and no more. `names` are all studies. Raises `InputError` where no page names the study.
    """
    for page, text in spoken.items():
        said = ["## What it means"]
        for section in re.split(r"^(?=#{1,2} )", text, flags=re.MULTILINE):
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
    """What a section says of the study `name`: nothing where it does not name it."""
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
