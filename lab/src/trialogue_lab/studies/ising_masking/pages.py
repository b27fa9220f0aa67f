"""Table and figures of the study."""

from functools import partial

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, Cells, Figure, Rows, finish, panels, result_table, spread
from trialogue_lab.studies.ising_masking.claims import PUBLISHED
from trialogue_lab.studies.ising_masking.statistics import error_at, limit


@result_table(
    "Exact limits of n times the squared error",
    "Lemma 4.1.1, Theorems 4.1.1 and 4.1.2",
    row_heading="model and masked sites",
    note="k/N Tr Γ: the limit if every site is scored equally often; C Tr I⁻¹: upper bound of Tr Γ; ordered pairs: the "
    "energy counts every pair twice",
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


TABLES = (_limits_table,)


def _draw(rows: Rows, coupling: float) -> Drawing:
    drawing, (left, right) = panels(2)
    if coupling not in rows.distinct("exact", "coupling"):
        left.set_title(f"no measurements at J = {coupling:g}")
        return drawing
    sizes, samples = rows.distinct("exact", "block_size"), rows.distinct("fit", "n")
    parameters = max(sizes) * (max(sizes) + 1) // 2
    for size, color in zip(sizes, COLORS, strict=False):
        # Points are shifted so that their bars do not overlap.
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
    finish(left, "Mean squared error per parameter, as published", legend=True)
    right.plot([], [], "o", color=grey, label="one random mask per sample")
    right.plot([], [], "x", color=grey, label="all masks of size k per sample")
    right.plot([], [], lw=1, color=grey, label="exact limit Tr Γ")
    right.set(xscale="log", xlabel="training samples n")
    right.set_ylim(0, 1.4 * right.get_ylim()[1])  # This leaves space for the legend.
    finish(right, "n times the squared error, summed over parameters", legend="upper right")
    return drawing


FIGURES = tuple(
    Figure(
        name=name,
        caption=f"{PUBLISHED[coupling]} (J = {coupling:g}). Left: as published, with bars of half a standard "
        "deviation over ten training sets. Lines are exact. Right: n times the error, with bars of one standard "
        "deviation over repetitions of the figure. With one mask per sample, masking more sites reduces the error. "
        "With all masks of every sample, the errors are almost equal.",
        draw=partial(_draw, coupling=coupling),
    )
    for name, coupling in (("weak-coupling", 0.05), ("two-modes", 0.3))
)
