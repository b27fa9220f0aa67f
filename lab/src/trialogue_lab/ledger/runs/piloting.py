"""Computation of a pilot, the estimates that predict the power of later runs."""

from typing import Any

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.pilots import Pilot
from trialogue_lab.ledger.runs.results import Result, hash_file
from trialogue_lab.ledger.settings import collect_seeds
from trialogue_lab.ledger.study import Study


def compute_pilot(study: Study[Any], result: Result) -> Pilot:
    """Compute the statistics of all claims from a small trial run, called a pilot.

    Args:
        study: The study, an experiment that tests claims of a publication.
        result: A finished result of the preset `pilot`.

    Raises:
        InputError: Another preset uses a seed of the pilot.
    """
    rows = study.rows(result)
    seeds = {int(record["seed"]) for record in result.records if record.get("seed") is not None}
    for name, config in study.presets.items():
        shared = seeds & collect_seeds(config) if name != "pilot" else set()
        if shared:
            hint = f"are also used by the preset {name}: give the pilot separate seeds"
            raise InputError("seeds", sorted(shared), hint)
    statistics = {claim.statistic.name: claim.statistic for claim in study.claims if claim.sampled}
    estimates = {name: tuple(map(float, statistic(rows))) for name, statistic in statistics.items()}
    commits = {session.get("commit") for session in result.provenance["sessions"]}
    return Pilot(
        seeds=tuple(sorted(seeds)),
        estimates={name: numbers for name, numbers in estimates.items() if numbers},
        rows_sha256=hash_file(result.folder / "rows.jsonl"),
        commit=commits.pop() if len(commits) == 1 else None,
    )
