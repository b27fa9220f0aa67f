"""Record of all names and values of the studies whose change would invalidate committed results.

`python -m ledger.record FILE` in `lab/tests` writes it. `test_record` compares the code with the committed record.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from trialogue.display.numbers import finite_or_none
from trialogue_lab import studies
from trialogue_lab.ledger import Entry, Study, ledger
from trialogue_lab.ledger.runs.results import COMMITTED, PRESETS, config_hash, config_values, finished_results


def record_of(entry: Entry) -> dict[str, Any]:
    """Return the hashes, registrations, parts, pilot and verdicts of a study, as JSON represents them."""
    study = entry.study
    presets = [preset for preset in PRESETS if preset in study.presets]
    finished = finished_results(study.name, COMMITTED, lambda line: None)
    return {
        "hashes": {
            preset: config_hash(study.name, study.version, config_values(study.presets[preset]))
            for preset in presets
        },
        "registrations": {preset: _digest(_registrations(study, preset)) for preset in presets},
        "claims": sorted(claim.id for claim in study.claims),
        "withdrawn": [claim.id for claim in study.withdrawn],
        "numbers": sorted(study.numbers),
        "figures": [figure.name for figure in study.figures],
        "tasks": {preset: _digest(_parts(study, preset)) for preset in presets},
        "pilot": _digest(sorted(study.pilot.estimates)),
        "verdicts": {
            each.claim.id: [each.answer, *map(finite_or_none, (each.estimate, each.low, each.high))]
            for each in entry.verdicts
        },
        "results": {
            result.hash: _digest([result.estimates, (result.folder / "claims.json").read_text()])
            for result in finished
        },
    }


def _registrations(study: Study[Any], preset: str) -> list[Any]:
    values = config_values(study.presets[preset])
    return [[claim.id, claim.registration(values)] for claim in study.claims]


def _parts(study: Study[Any], preset: str) -> list[Any]:
    return [[part.name, part.lane, dict(part.columns)] for part in study.parts(study.presets[preset])]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


if __name__ == "__main__":
    entries = ledger(map(studies.find, studies.modules()))
    Path(sys.argv[1]).write_text(
        json.dumps({entry.study.name: record_of(entry) for entry in entries}, indent=0) + "\n"
    )
