"""What the site of documentation adds while it is built, from the rows in `results/`: a page a study, and the gallery.

A hook of mkdocs (`mkdocs.yml` names it).
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from trialogue import studies
from trialogue.errors import InputError
from trialogue.gallery.document import render_gallery
from trialogue.ledger import ledger
from trialogue.ledger.pages.study_pages import studies_page, study_page, study_pictures

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(?<=\]\()\.\./((?:examples|results)/[^)#]+)")
"""A link of a page to a file that lies beside the folder of the documentation."""


def on_config(config: Any) -> Any:
    """List every study of the package in the navigation."""
    pages = [{"Overview": "studies/index.md"}, *({name: f"studies/{name}.md"} for name in _names())]
    for section in config.nav:
        if "Studies" in section:
            section["Studies"] = pages
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the studies, and their pictures."""
    entries = ledger([studies.find(name) for name in _names()], ROOT / "results")
    try:
        pages = {"studies/index.md": studies_page(entries), "gallery.html": render_gallery(ROOT / "results")}
        for entry in entries:
            pages[f"studies/{entry.study.name}.md"] = study_page(entry)
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
    del page, config, files
    return OUTSIDE.sub(r"\1", markdown)


def _names() -> list[str]:
    return [name for name, module in studies.modules().items() if module.startswith("trialogue.")]
