"""What the claims, tables and figures of the study `potts-coherence` read from its rows."""

from pandas import DataFrame, Series


def kind(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one kind of measurement, without the columns of other kinds."""
    return rows[rows.kind == name].dropna(axis=1, how="all")


def family(rows: DataFrame, kind_name: str, *names: str) -> DataFrame:
    """The rows of one kind about some families of chains."""
    chosen = rows[(rows.kind == kind_name) & rows.family.isin(names)]
    return chosen.dropna(axis=1, how="all")


def by_seed(chosen: DataFrame, values: "Series[float]", how: str = "mean") -> "Series[float]":
    """Mean, or smallest or largest, over the rows of a seed."""
    found: Series[float] = values.groupby(chosen.seed).agg(how)
    return found


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
