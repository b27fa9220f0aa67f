"""Tables of the study `ising-masking`: what was measured beside what is exact; the thesis prints no numbers."""

from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.ising_masking_rows import block_sizes, couplings, exact, scaled_error

_READINGS = {"one": "one mask", "all": "all masks"}


def _sizes(rows: DataFrame) -> list[int]:
    return sorted(rows[rows.kind == "fit"].n.astype(int).unique().tolist())


def _measured(rows: DataFrame, how: str) -> DataFrame:
    """n times the squared error, mean or standard deviation over repetitions, beside its limit."""
    lines: dict[str, dict[str, float]] = {}
    for masks, reading in _READINGS.items():
        for coupling in couplings(rows):
            limits = exact(rows, coupling, masks).trace
            for size in block_sizes(rows):
                scaled = scaled_error(rows, coupling, size, masks, least=0)
                line = {} if how == "std" else {"exact limit": float(limits.loc[size])}
                for n in _sizes(rows):
                    own = scaled[scaled.index.get_level_values("n") == n]
                    line[f"n = {n}"] = float(own.mean() if how == "mean" else own.std())
                lines[f"{reading}, J = {coupling:g}, k = {size}"] = line
    return DataFrame.from_dict(lines, orient="index")


def _exact_numbers(rows: DataFrame) -> DataFrame:
    lines = {}
    for coupling in couplings(rows):
        one, ordered = exact(rows, coupling), exact(rows, coupling, pairs="ordered")
        for size in block_sizes(rows):
            lines[f"J = {coupling:g}, k = {size}"] = {
                "Tr Γ": float(one.trace.loc[size]),
                "couplings": float(one.trace_couplings.loc[size]),
                "fields": float(one.trace_fields.loc[size]),
                "k/N Tr Γ": float(one.trace.loc[size]) * size / max(block_sizes(rows)),
                "Poincaré constant C": float(one.poincare.loc[size]),
                "C Tr I⁻¹": float(one.poincare.loc[size] * one.trace.iloc[-1]),
                "Tr Γ, ordered pairs": float(ordered.trace.loc[size]),
            }
    return DataFrame.from_dict(lines, orient="index")


TABLES = (
    Table(
        title="n times the squared error of the parameters",
        source="Figures 4.1 and 4.2, which print no numbers",
        ours=lambda rows: _measured(rows, "mean"),
        deviation=lambda rows: _measured(rows, "std"),
        rows_are="masks scored per sample",
        note="sum over the six couplings and four fields; ± one standard deviation over repetitions of the figure, "
        "each the mean of its training sets; the limit is Tr Γ, one mask or all masks of size k per sample",
    ),
    Table(
        title="The exact limits",
        source="Lemma 4.1.1, Theorems 4.1.1 and 4.1.2",
        ours=_exact_numbers,
        rows_are="model and masked sites",
        note="k/N Tr Γ: what is left of the effect when every site is scored equally often; C Tr I⁻¹ bounds Tr Γ; "
        "ordered pairs: every pair counted twice in the energy",
        digits=5,
    ),
)
