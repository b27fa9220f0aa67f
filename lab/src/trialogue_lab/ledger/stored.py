"""Stored verdicts of all committed results, with which `trialogue list` and `trialogue ledger` start quickly.

The file `ledger.json` in the folder of results has one entry per study. `make pages` writes it. An entry is used only
while the files of the study and of its results are those from which it was made.
"""

import hashlib
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.errors import InputError
from trialogue_lab.ledger.counts import Record

if TYPE_CHECKING:
    from trialogue_lab.ledger.entries import Entry

_PACKAGE = Path(__file__).resolve().parents[1]
COMMITTED = (_PACKAGE if (_PACKAGE / "results").is_dir() else _PACKAGE.parents[1]) / "results"
"""Folder of the results that are part of the repository or of the installed package."""

FILE = "ledger.json"

PLACES = "places.json"
"""File with the claims, as "study/claim", of each entry of the coverage page. `make pages` writes it."""

OWN = "ours"
"""Document of a study without a published claim."""

COLUMNS = (
    "claim", "title", "measured", "statement", "statement_id", "origin", "registered", "source", "published",
    "verdict", "alpha", "replications", "estimate", "low", "high", "direction", "threshold", "margin", "grade", "unit",
    "setting", "reason", "remarks", "replications_to_decide", "larger_preset", "larger_hours",
)  # fmt: skip
"""Columns of `ledger_records` that are stored."""


@dataclass(frozen=True)
class StudySummary:
    """A study with the verdicts on its claims, without its measurements.

    Args:
        name: Name of the study.
        source: Places in the publications that the study replicates.
        result: Preset and hash of the result, for example "default@0a1b2c3d4e5f". Empty without a result.
        scale: Preset of the result, and whether its scale is reduced (see `Entry.scale`). May be empty.
        claims: One record per claim, with the columns of `ledger_records` in `COLUMNS` and the study.
        glossary: Meanings of terms in the titles of the claims, by term.
    """

    name: str
    source: str
    result: str
    scale: str
    claims: Sequence[Record]
    glossary: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def document(self) -> str:
        """Key of the publication with most claims of the study, or `OWN`."""
        ids = [record["statement_id"] for record in self.claims if record["statement_id"]]
        found = Counter(identifier.partition(":")[0] for identifier in ids).most_common(1)
        return found[0][0] if found else OWN

    @cached_property
    def provenance(self) -> Mapping[str, Any]:
        """Content of the committed file `provenance.json` of the result. Empty without such a file."""
        path = COMMITTED / self.name / self.result.partition("@")[2] / "provenance.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found


def summarize(entry: "Entry") -> StudySummary:
    """Return the summary of an entry of the ledger.

    Args:
        entry: The study with its verdicts.
    """
    from trialogue_lab.ledger.entries import ledger_records

    records = [
        {"study": entry.study.name} | {name: record[name] for name in COLUMNS}
        for record in ledger_records([entry])
    ]
    result = f"{entry.result.preset or 'custom'}@{entry.result.hash}" if entry.result else ""
    return StudySummary(
        entry.study.name, entry.study.source, result, entry.scale, records, entry.study.glossary
    )


def stored_summaries(modules: Mapping[str, str], *, stale: bool = False) -> dict[str, StudySummary]:
    """Return the stored summaries that are up to date, by study.

    Args:
        modules: Module of each study, by name.
        stale: Also return summaries of studies whose files have changed since (default: False).
    """
    path = COMMITTED / FILE
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {
        name: StudySummary(
            name,
            found["source"],
            found["result"],
            found.get("scale", ""),
            [dict.fromkeys(COLUMNS) | {"study": name} | record for record in found["claims"]],
            found.get("glossary", {}),
        )
        for name, module in modules.items()
        if (found := stored.get(name)) and (stale or found["digest"] == _hash_sources(name, module))
    }


def store_summaries(entries: "Iterable[Entry]") -> Path:
    """Write the file of all summaries.

    Args:
        entries: Entries of the ledger, one per study.

    Returns:
        Path of the file.
    """
    from trialogue.storage import atomic_write

    studies = []
    for entry in entries:
        found = summarize(entry)
        head = {
            "digest": _hash_sources(found.name, entry.study.module),
            "source": found.source,
            "result": found.result,
            "scale": found.scale,
            "glossary": dict(found.glossary),
        }
        claims = [
            {name: record[name] for name in COLUMNS if record[name] not in (None, [])}
            for record in found.claims
        ]
        lines = ",\n".join(json.dumps(claim, ensure_ascii=False, allow_nan=False) for claim in claims)
        start = json.dumps(head, ensure_ascii=False)[:-1]
        studies.append(f'{json.dumps(found.name)}: {start}, "claims": [\n{lines}\n]}}')
    return atomic_write(COMMITTED / FILE, "{\n" + ",\n".join(studies) + "\n}\n")


@cache
def claims_by_place() -> Mapping[str, frozenset[str]]:
    """Return the claims, as "study/claim", about each entry of the coverage page, by its name in lower case."""
    path = COMMITTED / PLACES
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {place: frozenset(claims) for place, claims in found.items()}


def _hash_sources(name: str, module: str) -> str:
    """Return a hash of the source files of a study and of the hashes of its committed results."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InputError("study", name, f"module {module} is not installed")
    source = Path(spec.origin)
    own = source.parent.iterdir() if source.name == "__init__.py" else [source]
    results = COMMITTED / name
    files = [path for path in own if path.suffix in (".py", ".json", ".toml")]
    files += [*results.glob("*/DONE"), *results.glob("*/late.json"), *results.glob("*/origins.json")]
    content = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        content.update(f"{path.parent.name}/{path.name} {len(data)}\n".encode() + data)
    return content.hexdigest()[:16]
