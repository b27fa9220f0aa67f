"""Write `coverage.md`, the page with one row for each entry of the five documents.

The entries are in `entries/*.toml`. An entry is a definition, a theorem, a table, a figure, or a sentence with a
quantity. Its keys are:

    title       what the entry states, in plain words
    code        importable names of its implementation, relative to `trialogue_lab` unless they begin with `trialogue.`
    statements  ids of statements of the ledger without the document; "V-T311.*" includes parts such as "V-T311.proof"
    claims      further claims as "study/claim", which may have wildcards
    tests       exact checks, as "file::function"
    reason      why it has neither a verdict nor an exact check
    note        what a reader should know

Usage: python docs/document_coverage.py
"""

import ast
import fnmatch
import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.counts import Statement
from trialogue_lab.ledger.stored import stored_summaries

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
FOLDER = ROOT / "docs" / "entries"
STATES = {
    "holds": "holds",
    "partly": "partly refuted",
    "refuted": "refuted",
    "undecided": "undecided",
    "ours": "our claims only",
    "exact": "exact check",
    "code": "code only",
    "missing": "missing",
}
"""States of an entry, with the heads of the columns that count them."""
_LEGEND = """# Coverage of the documents

On this page you can look up, for each entry of five documents, whether it holds, where its code is, and how it was
tested. An entry is a definition, a theorem, a table, a figure, or a sentence with a quantity. The documents are the
thesis of Yuchen Li and four papers and notes. A section for each document, or for a part of the thesis, lists its
entries.

The first column of a section is the result for an entry:

| result | meaning |
|---|---|
| holds | At least one published claim about the entry holds. None is refuted or undecided. |
| partly refuted | At least one published claim about the entry is refuted, and at least one holds. |
| refuted | At least one published claim about the entry is refuted, and none holds. |
| undecided | At least one published claim about the entry is undecided. None is refuted. |
| our claims only | Only claims of this project were tested, for example about a corrected statement. |
| exact check | No claim was tested. A test compares the code with a second computation. |
| code only | The code exists. The last column says why nothing is tested. |
| missing | Not implemented. The last column says why. |

- The last column counts verdicts by study. *Ours* marks claims of this project. A claim can be about several entries.
- Names of code are in the package `trialogue_lab` unless they begin with `trialogue.`.
- For an assumption or a setting, an exact check tests the code that uses it.
- Verdicts are those of the committed results. The [rules of the ledger](explanation/ledger.md) explain them, and
  [Findings](findings.md) says what they mean.
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
    """Return what a name of `code` refers to.

    Args:
        name: Name of a module, class, function or attribute, as in the entries.

    Raises:
        InputError: If it does not exist.
    """
    parts = name.split(".") if name.startswith("trialogue.") else ["trialogue_lab", *name.split(".")]
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            continue
        try:
            for part in parts[length:]:
                found = getattr(found, part)
        except AttributeError:
            break
        return found
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
        InputError: If a name or test does not exist, or an entry without verdict and test gives no reason.
    """
    for name in row.values("code"):
        resolve(name)
    for test in row.values("tests"):
        path, _, function = test.partition("::")
        if function not in _functions(ROOT / path):
            raise InputError(row.identifier, test, "there is no such test")
    tested = ("holds", "refuted", "undecided")
    published = Counter(claim["verdict"] for claim in claims if claim["origin"] == "published")
    if any(published[verdict] for verdict in tested):
        answer = Statement(row.document, row.name, published).answer
        return "partly" if answer == "refuted" and published["holds"] else answer
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
    """Return the page: totals by section, then a table for each section."""
    totals = ["| part | entries | " + " | ".join(STATES.values()) + " |", "|---" * (len(STATES) + 2) + "|"]
    tables, everything = [], Counter[str]()
    for section, rows in sections.items():
        states, lines = (
            Counter[str](),
            ["| result | entry | statement | code | verdicts and checks |", "|---|---|---|---|---|"],
        )
        for row in rows:
            own = claims_of(row, claims)
            state = check(row, own)
            states[state] += 1
            lines.append(_line(row, own, state))
        everything += states
        totals.append(_count(section, states))
        tables.append(f"## {section}\n\n" + "\n".join(lines))
    totals.append(_count("all", everything))
    return "\n\n".join((_LEGEND.rstrip(), "## Totals", "\n".join(totals), *tables)) + "\n"


def _count(name: str, states: Counter[str]) -> str:
    cells = [name, states.total(), *(states[state] for state in STATES)]
    return "| " + " | ".join(map(str, cells)) + " |"


def _line(row: Row, claims: list[Mapping[str, Any]], state: str) -> str:
    """Return the line of an entry in its table."""
    answers: dict[tuple[str, str], Counter[str]] = {}
    for claim in claims:
        key = (claim["study"], " (ours)" if claim["origin"] == "ours" else "")
        answers.setdefault(key, Counter())[claim["verdict"]] += 1
    verdicts = [
        f"`{study}`{origin}: " + ", ".join(f"{answer} {count}" for answer, count in sorted(found.items()))
        for (study, origin), found in sorted(answers.items())
    ]
    files = dict.fromkeys(Path(test.partition("::")[0]).stem for test in row.values("tests"))
    if files:
        verdicts.append("exact check in " + ", ".join(f"`{name}`" for name in files))
    said = [row.entry.get("reason", ""), row.entry.get("note", "")]
    cells = [
        STATES[state],
        row.name if " " in row.name else "(no number)",
        row.entry["title"],
        "<br>".join(f"`{name}`" for name in row.values("code")),
        "<br>".join([*verdicts, *filter(None, said)]),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(make_page(load_rows(), load_claims()), encoding="utf-8")
