"""Tables of the study `mixing-and-learning`: how tight the bound is, and what masking one site more gains."""

import numpy as np
from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.mixing_and_learning_rows import couplings, laws


def _bound(rows: DataFrame) -> DataFrame:
    chosen = rows[rows.kind == "bound"]
    lines = {}
    for coupling in couplings(rows, coupled=False):
        for law in laws(rows):
            own = chosen[(chosen.coupling == coupling) & (chosen.law == law)]
            lines[f"J ~ {coupling:g}, {law}"] = {
                "C": float(np.exp(own.log_constant.mean())),
                "Tr Γ": float(np.exp(own.log_trace.mean())),
                "best constant / C, mean": float(own.tightness.mean()),
                "least": float(own.tightness_least.min()),
                "Tr Γ / (C Tr I⁻¹), mean": float(own.trace_share.mean()),
                "most": float(own.trace_share_most.max()),
                "min eig (I_PL - I / C)": float(own.information_slack.min()),
                "min eig (C I⁻¹ - Γ), relative": float(own.slack.min()),
            }
    return DataFrame.from_dict(lines, orient="index")


def _steps(rows: DataFrame) -> DataFrame:
    chosen = rows[rows.kind == "more"]
    lines = {}
    for family, label in ((name, str(name)) for name in chosen.family.unique()):
        for masked in sorted(chosen.masked.astype(int).unique().tolist()):
            own = chosen[(chosen.family == family) & (chosen.masked == masked)]
            lines[f"{label}, k = {masked} to {masked + 1}"] = {
                "min eig (Γ^k - Γ^(k+1)) / Tr Γ^k, least": float(own.smallest.min()),
                "largest over models": float(own.smallest_most.max()),
                "relative drop of Tr Γ, least": float(own.trace_drop.min()),
                "directions gained, most": int(own.rank_most.max()),
                "of parameters": int(own.parameters.max()),
                "error of I^(k+1) = I^k + C": float(own.identity.max()),
            }
    return DataFrame.from_dict(lines, orient="index")


TABLES = (
    Table(
        title="Gamma beside C I^-1",
        source="Theorems 4.1.2 and 4.1.3, which print no numbers",
        ours=_bound,
        rows_are="couplings and mask law",
        note="J ~ 0.3: normal couplings of this deviation; C and Tr Γ are geometric means over models, least and most "
        "are over all models; the last two columns are not negative where the theorems hold, up to rounding",
    ),
    Table(
        title="Masking one site more",
        source="Theorem 4.1.1",
        ours=_steps,
        rows_are="family and step",
        note="directions gained: rank of Γ^k - Γ^(k+1), the most over models; where it is below the number of "
        "parameters, some direction gains nothing",
    ),
)
