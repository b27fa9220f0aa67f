"""Tables of the study `potts-coherence`; the document on the Potts chain prints no numbers."""

from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.potts_coherence_plane import PLANE, RING
from trialogue.studies.potts_coherence_rows import chain_label, number_of_spins
from trialogue.studies.rows import kind

_CHAIN = ["family", "patterns", "window", "penalty", "temperature"]


def _name(key: tuple[str, float, float, float, float]) -> str:
    family, patterns, window, penalty, temperature = key
    return f"{family}, N = {patterns:g}, W = {window:g}, E = {penalty:g}, T = {temperature:g}"


def _walls(rows: DataFrame) -> DataFrame:
    chains = (
        kind(rows, "chain")
        .groupby(_CHAIN, sort=False)[["crossing_length", "wall_decay", "ground_decay"]]
        .mean()
    )
    lengths = kind(rows, "length")
    longest = lengths[lengths.length == lengths.length.max()]
    of_longest = longest.groupby(_CHAIN, sort=False)[
        ["walls", "run", "free_energy", "free_energy_bound"]
    ].mean()
    both = chains.join(of_longest)
    both.index = both.index.map(_name)
    return both.rename(
        columns={
            "crossing_length": "L*",
            "wall_decay": "decay of P(no wall)",
            "ground_decay": "decay of P(no excitation)",
            "walls": "walls",
            "run": "first run",
            "free_energy": "ΔF of one wall",
            "free_energy_bound": "bound (5)",
        }
    )


def _sampled(rows: DataFrame, how: str) -> DataFrame:
    found = kind(rows, "sampled").groupby(["patterns", "window", "temperature", "length"])
    means = found[["wall", "drawn", "gibbs"]].agg(how)
    means.index = means.index.map(lambda key: f"{chain_label(*key[:3])}, L = {key[3]:g}")
    return means.rename(columns={"wall": "exact", "drawn": "exact samples", "gibbs": "Gibbs from a pattern"})


def _sampled_deviation(rows: DataFrame) -> DataFrame:
    return _sampled(rows, "std").drop(columns="exact")


def _maps(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "map")
    columns = {
        "global": "one constant",
        "per_context": "constant per context",
        "per_step_0.5": "every token at T = 0.5",
        "per_step_2": "every token at T = 2",
        "round_trip": "there and back",
        "patterns": "patterns",
        "decay": "slowest decay",
    }
    lines = {}
    for width, group in chosen.groupby("width"):
        for how in ("min", "mean", "max"):
            found = group[list(columns)].agg(how)
            lines[f"w = {width:g}, {how}"] = {head: float(found[column]) for column, head in columns.items()}
    return DataFrame.from_dict(lines, orient="index")


def _plane(rows: DataFrame, how: str) -> DataFrame:
    chosen = kind(rows, "spins")
    lines = {}
    sides = sorted(chosen.side.unique().tolist())
    for temperature, group in chosen.groupby("temperature"):
        line = {"Onsager": float(group[group["shape"] == PLANE].onsager.mean())}
        for shape in (PLANE, RING):
            for side in sides:
                own = group[(group["shape"] == shape) & (group.side == side)]
                line[f"{shape}, {number_of_spins(side)}"] = float(own.magnetisation.agg(how))
        lines[f"T = {temperature:g} J"] = line
    return DataFrame.from_dict(lines, orient="index")


def _plane_deviation(rows: DataFrame) -> DataFrame:
    return _plane(rows, "std").drop(columns="Onsager")


TABLES = (
    Table(
        title="Walls, coherent runs and bounds",
        source="Theorem 1.1, equations 2 to 5",
        ours=_walls,
        rows_are="chain",
        note="exact; walls, the first run (in windows, cut at the chain's end) and ΔF at the longest length; decay "
        "in nats per site; E is what a wrong token costs, in planted chains the most that a window may",
    ),
    Table(
        title="Probability of at least one wall",
        source="Theorem 1.1",
        ours=lambda rows: _sampled(rows, "mean"),
        deviation=_sampled_deviation,
        rows_are="chain and length",
        note="lengths are L* / 10, L* and 10 L*; ± one standard deviation over seeds",
    ),
    Table(
        title="Autoregressive models as chains",
        source="Theorem 1.2 and Corollary 1.2.1",
        ours=_maps,
        rows_are="context and models",
        note="total variation from the model's law, or for temperatures from equation 10; patterns of the greedy map "
        "with their phases",
    ),
    Table(
        title="Magnetisation from an ordered start",
        source="Theorem 2.1",
        ours=lambda rows: _plane(rows, "mean"),
        deviation=_plane_deviation,
        rows_are="temperature",
        note="± one standard deviation over seeds; T_c = 2.269 J, E_min / log 3 = 1.82 J",
        digits=4,
    ),
)
