"""Tables and figures of the study: what was measured beside what is exact; the thesis prints no numbers."""

from functools import partial

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, Cells, Figure, Rows, finish, panels, result_table, spread
from trialogue_lab.studies.ising_masking.claims import PUBLISHED
from trialogue_lab.studies.ising_masking.statistics import error_at, limit

_READINGS = {"one": "one mask", "all": "all masks"}


@result_table(
    "n times the squared error of the parameters",
    "Figures 4.1 and 4.2, which print no numbers",
    rows_are="masks scored per sample",
    note="sum over the six couplings and four fields; ± one standard deviation over repetitions of the figure, "
    "each the mean of its training sets; the limit is Tr Γ, one mask or all masks of size k per sample",
)
def _measured_table(rows: Rows) -> Cells:
    """n times the squared error beside its limit."""
    return {
        f"{reading}, J = {coupling:g}, k = {size}": {
            "exact limit": limit(coupling, size, masks),
            **{f"n = {n}": error_at(coupling, size, n, masks) for n in rows.distinct("fit", "n")},
        }
        for masks, reading in _READINGS.items()
        for coupling in rows.distinct("exact", "coupling")
        for size in rows.distinct("exact", "block_size")
    }


@result_table(
    "The exact limits",
    "Lemma 4.1.1, Theorems 4.1.1 and 4.1.2",
    rows_are="model and masked sites",
    note="k/N Tr Γ: what is left of the effect when every site is scored equally often; C Tr I⁻¹ bounds Tr Γ; "
    "ordered pairs: every pair counted twice in the energy",
    digits=5,
)
def _limits_table(rows: Rows) -> Cells:
    last = max(rows.distinct("exact", "block_size"))
    return {
        f"J = {coupling:g}, k = {size}": {
            "Tr Γ": limit(coupling, size),
            "couplings": limit(coupling, size, column="trace_couplings"),
            "fields": limit(coupling, size, column="trace_fields"),
            "k/N Tr Γ": limit(coupling, size) * (size / last),
            "all masks, Tr Γ": limit(coupling, size, "all"),
            "Poincaré constant C": limit(coupling, size, column="poincare"),
            "C Tr I⁻¹": limit(coupling, size, column="poincare") * limit(coupling, last)(rows).item(),
            "Tr Γ, ordered pairs": limit(coupling, size, pairs="ordered"),
        }
        for coupling in rows.distinct("exact", "coupling")
        for size in rows.distinct("exact", "block_size")
    }


TABLES = (_measured_table, _limits_table)


def _draw(rows: Rows, coupling: float) -> Drawing:
    drawing, (left, right) = panels(2)
    if coupling not in rows.distinct("exact", "coupling"):
        left.set_title(f"J = {coupling:g} was not measured")
        return drawing
    sizes, samples = rows.distinct("exact", "block_size"), rows.distinct("fit", "n")
    parameters = max(sizes) * (max(sizes) + 1) // 2
    for size, color in zip(sizes, COLORS, strict=False):
        # Apart, so that bars can be told from each other.
        places = [n * 1.06 ** (size - (len(sizes) + 1) / 2) for n in samples]
        for masks, fmt in (("one", "o"), ("all", "x")):
            cells = [error_at(coupling, size, n, masks) for n in samples]
            spread(right, places, cells, rows, fmt, color=color)
            trace = limit(coupling, size, masks)(rows).item()
            right.axhline(trace, color=color, lw=1, ls="-" if masks == "one" else ":")
        means, deviations = (
            [error_at(coupling, size, n, column=column)(rows).mean() / (n * parameters) for n in samples]
            for column in ("squared_error", "deviation")
        )
        bars = [deviation / 2 for deviation in deviations]
        left.errorbar(places, means, bars, fmt="o", color=color, label=f"k = {size}")
        trace = limit(coupling, size)(rows).item()
        left.plot(samples, [trace / (parameters * n) for n in samples], lw=1, color=color)
    grey = "#444444"
    left.plot([], [], lw=1, color=grey, label="exact, Tr Γ / (n parameters)")
    left.set(xscale="log", yscale="log", xlabel="training samples n")
    finish(left, "Mean squared error of a parameter, as published", legend=True)
    right.plot([], [], "o", color=grey, label="one random mask a sample")
    right.plot([], [], "x", color=grey, label="all masks of size k of every sample")
    right.plot([], [], lw=1, color=grey, label="exact limit Tr Γ")
    right.set(xscale="log", xlabel="training samples n")
    right.set_ylim(0, 1.4 * right.get_ylim()[1])  # the legend stands above what is measured
    finish(right, "n times the squared error, summed over parameters", legend="upper right")
    return drawing


FIGURES = tuple(
    Figure(
        name=name,
        caption=f"{PUBLISHED[coupling]} (J = {coupling:g}). Left: as published, bars of half a standard deviation over "
        "ten training sets; lines are exact. Right: the same, times n, bars of one standard deviation over "
        "repetitions of the figure. With one mask a sample masking more errs less; with all masks of every sample the "
        "gap is gone.",
        draw=partial(_draw, coupling=coupling),
    )
    for name, coupling in (("weak-coupling", 0.05), ("two-modes", 0.3))
)
