"""Tables and figures of the study; the document on the Potts chain prints no numbers."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, largest, result_table, smallest, spread
from trialogue_lab.studies.potts_coherence.chains import PLANTED, SHARED, UNIFORM
from trialogue_lab.studies.potts_coherence.plane import PLANE, RING
from trialogue_lab.studies.potts_coherence.statistics import CHAIN, uniform

_SEEDS = "± one standard deviation over seeds"
_SAMPLED = ["patterns", "window", "temperature"]
_WALLS = {
    "crossing_length": "L*",
    "wall_decay": "decay of P(no wall)",
    "ground_decay": "decay of P(no excitation)",
    "walls": "walls",
    "run": "first run",
    "free_energy": "ΔF of one wall",
    "free_energy_bound": "bound (5)",
}
_MAPS = {
    "global": "one constant",
    "per_context": "constant per context",
    "per_step_0.5": "every token at T = 0.5",
    "per_step_2": "every token at T = 2",
    "round_trip": "there and back",
    "patterns": "patterns",
    "decay": "slowest decay",
}


def _spins(side: Any) -> str:
    return f"{side**2:g} spins"


def _sampled_label(patterns: Any, window: Any, temperature: Any) -> str:
    return f"N = {patterns:g}, W = {window:g}, T = {temperature:g}"


@result_table(
    "Walls, coherent runs and bounds",
    "Theorem 1.1, equations 2 to 5",
    rows_are="chain",
    note="exact; walls, the first run (in windows, cut at the chain's end) and ΔF at the longest length; decay "
    "in nats per site; E is what a wrong token costs, in planted chains the most that a window may",
)
def _walls_table(rows: Rows) -> DataFrame:
    lengths = rows["length"]
    longest = lengths[lengths.length == lengths.length.max()]
    both = rows["chain"].merge(longest, on=CHAIN)
    names = both[CHAIN].itertuples(index=False, name=None)
    both.index = [f"{name}, N = {n:g}, W = {w:g}, E = {cost:g}, T = {t:g}" for name, n, w, cost, t in names]
    return both[list(_WALLS)].rename(columns=_WALLS)


@result_table(
    "Two patterns between which a wall costs ever more",
    "Definition 1.3 and Theorem 1.1 (control not in the document)",
    rows_are="chain",
    note="exact, nearest neighbours, a million tokens; the document asks that E_max is finite",
)
def _controls_table(rows: Rows) -> DataFrame:
    table = rows["control"].set_index(rows["control"].penalty.map("a wall costs {:g} T".format))
    table.index = table.index.where(~table.forbidden, "a wall is forbidden")
    heads = {"ground_decay": "decay of P(no wall)", "wall": "P(at least one wall)"}
    return table[list(heads)].rename(columns=heads)


@result_table(
    "Probability of at least one wall",
    "Theorem 1.1",
    rows_are="chain and length",
    note=f"lengths are L* / 10, L* and 10 L*; {_SEEDS}",
)
def _sampled_table(rows: Rows) -> Cells:
    return {
        f"{_sampled_label(*setting)}, L = {length:g}": {
            "exact": float(table.wall.iloc[0]),
            "exact samples": table.drawn,
            "Gibbs from a pattern": table.gibbs,
        }
        for (*setting, length), table in rows["sampled"].groupby([*_SAMPLED, "length"])
    }


@result_table(
    "Autoregressive models as chains",
    "Theorem 1.2 and Corollary 1.2.1",
    rows_are="context, and which of the models",
    note="total variation from the model's law, or for temperatures from equation 10; patterns of the greedy map "
    "with their phases",
)
def _maps_table(rows: Rows) -> Cells:
    return {
        f"w = {width:g}, {word}": {
            head: extreme("map", column, where=f"width == {width}") for column, head in _MAPS.items()
        }
        for width in sorted(rows["map"].width.unique())
        for word, extreme in (("smallest", smallest), ("largest", largest))
    }


@result_table(
    "Magnetisation from an ordered start",
    "Theorem 2.1",
    rows_are="temperature",
    note=f"{_SEEDS}; T_c = 2.269 J, E_min / log 3 = 1.82 J",
    digits=4,
)
def _plane_table(rows: Rows) -> Cells:
    return {
        f"T = {temperature:g} J": {"Onsager": float(at.onsager.max())}
        | {
            f"{shape}, {_spins(side)}": table.magnetisation.astype(float)
            for (shape, side), table in at.groupby(["shape", "side"])
        }
        for temperature, at in rows["spins"].groupby("temperature")
    }


TABLES = (_walls_table, _controls_table, _sampled_table, _maps_table, _plane_table)


@figure(
    "walls",
    "Left: probability of a wall against the length, exact (lines), exact samples (circles) and Gibbs "
    "sampling that begins in a stored pattern (crosses); error bars are standard deviations over seeds. Middle: "
    "the mean first coherent run, exact, at equal temperatures in units of the most that a window costs, beside "
    "the crossing length L* of equation 5; the dashed line is the chain's length. Right: how much equation 5 "
    "overestimates the free energy of a single wall; below zero it is no bound.",
)
def _walls_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, width=3.9, height=4.0)
    for draw, one in zip((_walls_against_length, _runs_against_temperature, _one_wall), axes, strict=True):
        draw(one, rows)
    return drawing


def _walls_against_length(axes: Axes, rows: Rows) -> None:
    samples = dict(iter(rows["sampled"].groupby(_SAMPLED)))
    for color, (setting, curve) in zip(COLORS, rows["curve"].groupby(_SAMPLED), strict=False):
        axes.plot(curve.length, curve.wall, color=color, label=_sampled_label(*setting))
        lengths = sorted(samples[setting].length.unique())
        for column, mark in (("drawn", "o"), ("gibbs", "x")):
            shares = [samples[setting].query("length == @length")[column] for length in lengths]
            spread(axes, lengths, shares, rows, mark, color=color, mfc="none")
        axes.axvline(lengths[1], color=color, lw=0.8, ls=":")
    axes.set(xscale="log", xlabel="length L", ylabel="P(at least one wall)")
    finish(axes, "Walls appear at L* (dotted)", legend=True)


def _runs_against_temperature(axes: Axes, rows: Rows) -> None:
    runs = uniform(rows)
    runs = runs[(runs.length == runs.length.max()) & (runs.patterns == 2)]
    # L* of the same chain: the table of rates names it by the same columns.
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


def _one_wall(axes: Axes, rows: Rows) -> None:
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
    finish(axes, "Bound (5) less the exact ΔF, in units of T", legend=True)


@figure(
    "plane",
    "Magnetisation after the sweeps from all spins up: on a torus, and on a ring of as many spins at the "
    "same temperatures; error bars are standard deviations over seeds.",
)
def _plane_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=7.2, height=4.2)
    infinite, order = rows["onsager"], rows["order"].iloc[0]
    axes.plot(infinite.temperature, infinite.magnetisation, color=QUIET, label="plane, exact (Onsager)")
    bound = infinite[infinite.bound > 0]
    axes.plot(bound.temperature, bound.bound, "--", color=QUIET, label="plane, bound by Peierls' argument")
    spins = rows["spins"]
    for shape, color in ((PLANE, OURS), (RING, BAD)):
        for mark, (side, table) in zip("so^", spins[spins["shape"] == shape].groupby("side"), strict=False):
            temperatures = sorted(table.temperature.unique())
            cells = [table.magnetisation[table.temperature == temperature] for temperature in temperatures]
            label = f"{shape}, {_spins(side)}"
            spread(axes, temperatures, cells, rows, mark, color=color, mfc="none", label=label)
    for place, name in ((order.critical, "T_c"), (order.peierls, "E_min / log 3")):
        axes.axvline(place, color=QUIET, lw=0.8, ls=":")
        axes.text(place + 0.03, 0.55, name, color=QUIET, rotation=90, va="center")
    lowest = min(-0.1, float(spins.magnetisation.min()) - 0.05)
    axes.set(xlabel="temperature in units of J", ylabel="magnetisation per spin")
    axes.set(xlim=(0, None), ylim=(lowest, 1.08))
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.42))
    return drawing


FIGURES = (_walls_figure, _plane_figure)
