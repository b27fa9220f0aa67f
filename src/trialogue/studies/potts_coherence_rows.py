"""What the claims, tables and figures of the study `potts-coherence` read from its rows."""

from pandas import DataFrame

from trialogue.studies.rows import kind


def family(rows: DataFrame, kind_name: str, *names: str) -> DataFrame:
    """The rows of one kind about some families of chains."""
    chosen = rows[(rows.kind == kind_name) & rows.family.isin(names)]
    return chosen.dropna(axis=1, how="all")


def number_of_spins(side: float) -> str:
    """How many spins a torus of a side has, or a ring beside it, as labels call them."""
    return f"{side**2:g} spins"


def chain_label(patterns: float, window: float, temperature: float) -> str:
    """How labels call a chain that is sampled."""
    return f"N = {patterns:g}, W = {window:g}, T = {temperature:g}"


def spins(rows: DataFrame, shape: str, least: float = 0.0, most: float = float("inf")) -> DataFrame:
    """Magnetisations on the largest torus, or ring, at temperatures `least` to `most`."""
    chosen = kind(rows, "spins")
    largest = chosen.side == chosen.side.max()
    return chosen[(chosen["shape"] == shape) & largest & chosen.temperature.between(least, most)]
