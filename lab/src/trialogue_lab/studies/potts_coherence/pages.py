"""Tables and figures of the study. The document on the Potts chain prints no numbers."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, largest, result_table, smallest
from trialogue_lab.studies.potts_coherence.chains import PLANTED, SHARED, UNIFORM
from trialogue_lab.studies.potts_coherence.plane import PLANE, RING
from trialogue_lab.studies.potts_coherence.statistics import CHAIN, select_uniform_chains

_SAMPLED = ["patterns", "window", "temperature"]
_MAPS = {
    "global": "one constant",
    "per_context": "constant per context",
    "per_step_0.5": "per token, T = 0.5",
    "per_step_2": "per token, T = 2",
    "round_trip": "round trip",
    "patterns": "patterns",
    "decay": "slowest decay",
}


def _make_chain_label(patterns: Any, window: Any, temperature: Any) -> str:
    return f"N = {patterns:g}, W = {window:g}, T = {temperature:g}"


@result_table(
    "Autoregressive models as chains",
    "Theorem 1.2 and Corollary 1.2.1",
    row_heading="context width, extreme over models",
    note="Total variation from the distribution of the model, or from equation 10 at a temperature. Patterns of greedy "
    "decoding are counted with their phases.",
)
def _maps_table(rows: Rows) -> Cells:
    return {
        f"w = {width:g}, {label}": {
            head: extreme("map", column, where=f"width == {width}") for column, head in _MAPS.items()
        }
        for width in rows.distinct("map", "width")
        for label, extreme in (("smallest", smallest), ("largest", largest))
    }


TABLES = (_maps_table,)


@figure(
    "walls",
    "Left: probability of a wall by length, exact (lines), from exact samples (circles), and from Gibbs sampling that "
    "starts from a stored pattern (crosses). Error bars are standard deviations over seeds. Middle: exact mean first "
    "coherent run by temperature in units of E_max, and the crossing length L* of equation 5. The dashed line is the "
    "length of the chain. Right: bound of equation 5 on the free energy of a single wall, minus the exact free "
    "energy. Below zero, the bound fails.",
)
def _walls_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, width=3.9, height=4.0)
    for draw, one in zip(
        (_draw_walls_against_length, _draw_runs_against_temperature, _draw_one_wall), axes, strict=True
    ):
        draw(one, rows)
    return drawing


def _draw_walls_against_length(axes: Axes, rows: Rows) -> None:
    samples = dict(iter(rows["sampled"].groupby(_SAMPLED)))
    for color, (setting, curve) in zip(COLORS, rows["curve"].groupby(_SAMPLED), strict=False):
        axes.plot(curve.length, curve.wall, color=color, label=_make_chain_label(*setting))
        by_length = samples[setting].groupby("length")
        for column, mark in (("drawn", "o"), ("gibbs", "x")):
            found = by_length[column].agg(["mean", "std"])
            axes.errorbar(found.index, found["mean"], found["std"], fmt=mark, color=color, mfc="none")
        axes.axvline(found.index[1], color=color, lw=0.8, ls=":")
    axes.set(xscale="log", xlabel="length L", ylabel="P(at least one wall)")
    finish(axes, "Walls appear at L* (dotted)", legend=True)


def _draw_runs_against_temperature(axes: Axes, rows: Rows) -> None:
    runs = select_uniform_chains(rows)
    runs = runs[(runs.length == runs.length.max()) & (runs.patterns == 2)]
    runs = runs.merge(rows["chain"][[*CHAIN, "crossing_length"]], on=CHAIN)
    for color, (window, table) in zip(COLORS, runs.groupby("window"), strict=False):
        heat = table.temperature / table.max_energy
        axes.plot(heat, table.run, "o-", color=color, label=f"W = {window:g}")
        axes.plot(heat, table.crossing_length, ":", color=color)
    longest = float(runs.length.max())
    axes.plot([], [], ":", color=QUIET, label="L* of equation 5")
    axes.axhline(longest, color=QUIET, lw=0.8, ls="--")
    axes.set(xscale="log", yscale="log", ylim=(1, 3 * longest), xlabel="T / E_max", ylabel="tokens")
    finish(axes, f"First coherent run, N = 2, L = {longest:g}", legend=True)


def _draw_one_wall(axes: Axes, rows: Rows) -> None:
    table = rows["length"].query("length == length.max() and patterns > 1")
    for color, name, shift in zip(COLORS, (UNIFORM, PLANTED, SHARED), (0.94, 1.0, 1.06), strict=False):
        chains = table[table.family == name]
        slack = (chains.free_energy_bound - chains.free_energy) / chains.temperature
        axes.plot(chains.temperature * shift, slack, "o", color=color, mfc="none", label=name)
    axes.axhline(0, color="black", lw=1)
    axes.set(xscale="log", yscale="symlog", xlabel="temperature")
    temperatures = sorted(table.temperature.unique().tolist())
    axes.set_xticks(temperatures, [f"{temperature:g}" for temperature in temperatures])
    axes.minorticks_off()
    finish(axes, "Bound (5) minus exact ΔF, in units of T", legend=True)


@figure(
    "plane",
    "Magnetisation after Gibbs sampling that starts with all spins up. The ring has the same number of spins as the "
    "torus. Error bars are standard deviations over seeds.",
)
def _plane_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=7.2, height=4.2)
    infinite, order = rows["onsager"], rows["order"].iloc[0]
    axes.plot(infinite.temperature, infinite.magnetisation, color=QUIET, label="plane, exact (Onsager)")
    bound = infinite[infinite.bound > 0]
    axes.plot(bound.temperature, bound.bound, "--", color=QUIET, label="plane, Peierls bound")
    spins = rows["spins"]
    for shape, color in ((PLANE, OURS), (RING, BAD)):
        for mark, (_, table) in zip("so^", spins[spins["shape"] == shape].groupby("side"), strict=False):
            found = table.groupby("temperature").magnetisation.agg(["mean", "std"])
            label = f"{shape}, {table.side.iloc[0] ** 2} spins"
            axes.errorbar(
                found.index, found["mean"], found["std"], fmt=mark, color=color, mfc="none", label=label
            )
    for place, name in ((order.critical, "T_c"), (order.peierls, "E_min / log 3")):
        axes.axvline(place, color=QUIET, lw=0.8, ls=":")
        axes.text(place + 0.03, 0.55, name, color=QUIET, rotation=90, va="center")
    axes.set(xlabel="temperature in units of J", ylabel="magnetisation per spin", xlim=(0, None))
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.42))
    return drawing


FIGURES = (_walls_figure, _plane_figure)
