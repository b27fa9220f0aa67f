"""Write `coverage.md`, the page with one row for each entry of the five documents.

The names of the entries and their claims are also written to `places.json`, for `trialogue ledger --statement`.

The entries are in `entries/*.toml`. An entry is a definition, a theorem, a table, a figure, or a sentence with a
quantity. Its keys are:

    title       statement of the entry in plain English
    place       where the document has it, such as "Section 2.1"; only for an entry without its own number
    code        importable names of its implementation, relative to `trialogue_lab` unless they begin with `trialogue.`
    statements  ids of statements of the ledger without the document; "V-T311.*" includes parts such as "V-T311.proof"
    claims      further claims as "study/claim", which may have wildcards
    tests       exact checks, as "file::function"
    reason      why it has neither a verdict nor an exact check
    note        additional information for readers

Usage: python docs/document_coverage.py
"""

import ast
import fnmatch
import importlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trialogue.display.columns import wrap_words
from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.stored import COMMITTED, PLACES, stored_summaries

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
FOLDER = ROOT / "docs" / "entries"
STATES = {
    "holds": "holds",
    "partly holds": "partly holds",
    "partly refuted": "partly refuted",
    "refuted": "refuted",
    "undecided": "undecided",
    "ours": "our claims only",
    "exact": "exact check",
    "code": "code only",
    "missing": "missing",
}
"""States of an entry, with their names on the page."""
_INTRODUCTION = """# Coverage of the documents

On this page you can look up a definition, theorem, table or figure of five documents: does it hold, and where is its
code? The documents are the thesis of Yuchen Li and four papers and notes. Each numbered item, and each sentence with a
quantity, is an *entry*. [Findings](findings.md) counts statements instead: an entry can contain several, and a
statement can belong to several entries.

{counts}

## Results by part

{totals}

The last column counts entries that no published claim tests.

## How to read the tables

A *claim* compares a measured number with a threshold, and a *study* measures the numbers of its claims. *Published*
claims come from the document. This project adds claims of its own, such as controls and corrected statements. [Rules of
the ledger](explanation/ledger.md) explains how a claim is judged.

| result | meaning |
|---|---|
| holds | All tested published claims about the entry hold. |
| partly holds | Some hold, and the others are undecided. |
| partly refuted | Some hold, and some are refuted. |
| refuted | Some are refuted, and none holds. |
| undecided | All are undecided. |
| our claims only | Only claims of this project were tested. |
| exact check | No claim was tested. A test compares the code with a second computation. |
| code only | The code exists. Nothing is tested, for the printed reason. |
| missing | Not implemented, for the printed reason. |

The column *tested by* has the names of studies, or of files with tests if no study has a claim. A row that is *partly
refuted* names the refuted claims if they are one or two. To see all claims and their numbers, name the study and the
entry:

```sh
trialogue ledger interaction-order --statement "Figure 2c"
```
"""


@dataclass(frozen=True)
class Row:
    """An entry of a document.

    Args:
        document: Key of the document, as in `DOCUMENTS`.
        name: Printed number, for example "Theorem 3.1.1", or a short key of an entry without a number.
        entry: Keys of the entry, as in the docstring of this file.
    """

    document: str
    name: str
    entry: Mapping[str, Any]

    @property
    def identifier(self) -> str:
        """Name with the document, unique among all rows."""
        return f"{self.document}:{self.name}"

    @property
    def place(self) -> str:
        """Where the document has the entry: its number, or a section for an entry without a number."""
        return self.name if " " in self.name else str(self.entry["place"])

    def values(self, key: str) -> list[str]:
        """Return a list of the entry, empty if the entry does not have it."""
        return list(self.entry.get(key, ()))


def load_rows() -> dict[str, list[Row]]:
    """Return the rows of each file of entries, by the section that the file is about."""
    found = {}
    for document in ("potts", "clones", "type-signature", "memorization", "thesis"):
        for path in sorted(FOLDER.glob(f"{document}*.toml"), key=lambda path: path.stem):
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            section = content.get("section") or f"{DOCUMENTS[document].partition(':')[0]}"
            found[section] = [Row(document, name, entry) for name, entry in content["entries"].items()]
    return found


def load_claims() -> list[Mapping[str, Any]]:
    """Return all claims with their verdicts, from the committed summary of the ledger."""
    summaries = stored_summaries(studies.modules(), stale=True)
    return [claim for summary in summaries.values() for claim in summary.claims]


def resolve(name: str) -> object:
    """Return the object with a name of the field `code`.

    Args:
        name: Name of a module, class, function or attribute, as in the entries.

    Raises:
        InputError: If it does not exist.
    """
    found, rest = _import(name)
    for part in rest:
        found = getattr(found, part)
    return found


def _import(name: str) -> tuple[Any, list[str]]:
    """Import the longest module at the beginning of a name of `code`, and return it with the names of attributes."""
    parts = name.split(".") if name.startswith("trialogue.") else ["trialogue_lab", *name.split(".")]
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            module_found = found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            continue
        try:
            for part in parts[length:]:
                found = getattr(found, part)
        except AttributeError:
            break
        return module_found, parts[length:]
    raise InputError("code", name, "no such name can be imported")


@cache
def _functions(path: Path) -> frozenset[str]:
    """Return the names of the functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def claims_of(row: Row, claims: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the claims about an entry.

    Raises:
        InputError: If a statement or a pattern of the entry has no claim.
    """
    chosen = set[int]()
    claims = list(claims)
    for statement in row.values("statements"):
        identifier = f"{row.document}:{statement.removesuffix('.*')}"
        begins = f"{identifier}." if statement.endswith(".*") else None
        found = {
            place
            for place, claim in enumerate(claims)
            if (name := claim["statement_id"] or "") == identifier or (begins and name.startswith(begins))
        }
        chosen |= _require_some(found, row, statement)
    for pattern in row.values("claims"):
        matches = re.compile(fnmatch.translate(pattern)).match
        found = {place for place, claim in enumerate(claims) if matches(f"{claim['study']}/{claim['claim']}")}
        chosen |= _require_some(found, row, pattern)
    return [claims[place] for place in sorted(chosen)]


def _require_some(found: set[int], row: Row, wanted: str) -> set[int]:
    if not found:
        raise InputError(row.identifier, wanted, "the ledger has no such claim")
    return found


def check(row: Row, claims: list[Mapping[str, Any]]) -> str:
    """Return the state of an entry, a key of `STATES`.

    Args:
        row: The entry.
        claims: The claims about it.

    Raises:
        InputError: If a name or test does not exist, an entry without a number has no place, or an entry without
            verdict and test gives no reason.
    """
    if " " not in row.name and not row.entry.get("place"):
        raise InputError(row.identifier, row.entry["title"], "say where the document has it: place")
    for name in row.values("code"):
        resolve(name)
    for test in row.values("tests"):
        path, _, function = test.partition("::")
        if function not in _functions(ROOT / path):
            raise InputError(row.identifier, test, "there is no such test")
    tested = ("holds", "refuted", "undecided")
    published = Counter(claim["verdict"] for claim in claims if claim["origin"] == "published")
    if any(published[verdict] for verdict in tested):
        if published["refuted"]:
            return "partly refuted" if published["holds"] else "refuted"
        if published["undecided"]:
            return "partly holds" if published["holds"] else "undecided"
        return "holds"
    if any(claim["verdict"] in tested for claim in claims):
        return "ours"
    if row.values("tests"):
        return "exact"
    if not row.entry.get("reason"):
        raise InputError(
            row.identifier, row.entry["title"], "say why it has neither a verdict nor a test: reason"
        )
    return "code" if row.values("code") else "missing"


def make_page(sections: Mapping[str, list[Row]], claims: list[Mapping[str, Any]]) -> str:
    """Return the page: an introduction with totals, the tables of all sections, then the files that they link."""
    totals = [f"| part | {' | '.join(_COUNTED)} | other |", "|---" + "|--:" * (len(_COUNTED) + 1) + "|"]
    tables, everything, files = [], Counter[str](), dict[str, int]()
    for section, rows in sections.items():
        states, lines = Counter[str](), list[str]()
        for row in rows:
            own = claims_of(row, claims)
            state = check(row, own)
            states[state] += 1
            lines.append(_line(row, own, state, files))
        everything += states
        totals.append(_count(f"[{section}](#{_anchor(section)})", states))
        chapter = re.search(r"\(sections? (\d)", section)
        anchor = _CHAPTERS[chapter[1]] if chapter else _anchor(section)
        findings = f"[Main results](findings.md#{anchor})"
        tables.append(f"## {section}\n\n{findings}\n\n" + "\n".join((_HEAD, *lines)))
    introduction = _INTRODUCTION.format(counts=_summarize(everything), totals="\n".join(totals))
    links = "\n".join(f"[{number}]: ../{path}" for path, number in files.items())
    return "\n\n".join((introduction.rstrip(), *tables, links)) + "\n"


_COUNTED = ("holds", "partly holds", "partly refuted", "refuted", "undecided")
"""Columns of the table of totals."""
_FEW = 2
"""Largest number of refuted claims that the row of a partly refuted entry names."""
_CHAPTERS = {
    "2": "thesis-chapter-2-training",
    "3": "thesis-chapter-3-inference-with-a-verifier",
    "4": "thesis-chapter-4-masked-models",
}
"""Anchors of the chapters of the thesis on the page of findings."""
_HEAD = "| entry | statement | result | tested by | code |\n|---|---|---|---|---|"


def _summarize(states: Counter[str]) -> str:
    """Return a sentence with the number of entries by state."""
    tested = sum(states[state] for state in _COUNTED)
    text = (
        f"**Of {states.total()} entries, {tested} were tested by a published claim: {states['holds']} hold, "
        f"{states['partly holds']} partly hold, {states['partly refuted']} are partly refuted, {states['refuted']} are "
        f"refuted, and {states['undecided']} are undecided.** Another {states['exact']} have an exact check, mostly "
        f"definitions and lemmas. For {states['ours']} only claims of this project were tested, {states['code']} are "
        f"settings with code, and {states['missing']} are missing."
    )
    return "\n".join(wrap_words(text, 120))


def _count(name: str, states: Counter[str]) -> str:
    counted = [states[state] for state in _COUNTED]
    return _join_cells([name, *counted, states.total() - sum(counted)])


def _anchor(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _join_cells(cells: Iterable[object]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _link_code(name: str, files: dict[str, int]) -> str:
    """Return the last part of a name of `code`, with a link to the file that defines it.

    The link is the number of the file in `files`, to which a new file is added.
    """
    found, rest = _import(name)
    module = str(found.__name__)
    for part in rest:  # A package may import the class from another module. A property has no module.
        found = getattr(found, part)
        defined = str(getattr(found, "__module__", ""))
        module = defined if defined.startswith("trialogue") else module
    source = "src" if module.partition(".")[0] == "trialogue" else "lab/src"
    path = f"{source}/{module.replace('.', '/')}"
    path += ".py" if (ROOT / f"{path}.py").is_file() else "/__init__.py"
    number = files.setdefault(path, len(files) + 1)
    return f"[`{'.'.join(rest) or name.rpartition('.')[2]}`][{number}]"


def _line(row: Row, claims: list[Mapping[str, Any]], state: str, files: dict[str, int]) -> str:
    """Return the line of an entry in its table. The files with its code are added to `files`."""
    names = sorted({claim["study"] for claim in claims}) or [_stem(test) for test in row.values("tests")]
    tested_by = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
    published = [claim for claim in claims if claim["origin"] == "published"]
    refuted = [claim["title"] or claim["statement"] for claim in published if claim["verdict"] == "refuted"]
    few = state == "partly refuted" and len(refuted) <= _FEW
    refuted_claims = f"Refuted: {'; '.join(title.rstrip('.') for title in refuted)}." if few else None
    cells = [
        row.place,
        row.entry["title"],
        STATES[state],
        "<br>".join(
            filter(None, [tested_by, refuted_claims, row.entry.get("reason"), row.entry.get("note")])
        ),
        "<br>".join(_link_code(name, files) for name in row.values("code")),
    ]
    return _join_cells(cells)


def _stem(test: str) -> str:
    """Return the name of the file of a test without its ending."""
    return Path(test.partition("::")[0]).stem


def list_places(sections: Mapping[str, list[Row]], claims: list[Mapping[str, Any]]) -> str:
    """Return the content of the file `PLACES`: the claims of each entry that has some, by its name in lower case."""
    found: dict[str, set[str]] = {}
    for row in (row for rows in sections.values() for row in rows):
        names = {f"{claim['study']}/{claim['claim']}" for claim in claims_of(row, claims)}
        found.setdefault(row.place.lower(), set()).update(names)
    lines = [f"{json.dumps(place)}: {json.dumps(sorted(names))}" for place, names in found.items() if names]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    everything = (load_rows(), load_claims())
    PAGE.write_text(make_page(*everything), encoding="utf-8")
    (COMMITTED / PLACES).write_text(list_places(*everything), encoding="utf-8")
