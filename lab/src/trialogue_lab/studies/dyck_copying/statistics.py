"""Statistics of the study, with one number per trained network."""

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """Count the tokens that a network trained to copy its input predicts correctly at their position.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Shape of the network, a key of `ARMS`.
        column: "copied" (default), or "uniform" for the same network with uniform attention weights.

    Returns:
        Correct predictions and all tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts((table[column] * table.tokens).round(), table.tokens)


@trainings
def lost(rows: Rows, arm: str) -> Counts:
    """Count how many fewer tokens a copying network predicts correctly if its attention weights are made uniform.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Shape of the network, a key of `ARMS`.

    Returns:
        The decrease and the number of all tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts(((table.copied - table.uniform) * table.tokens).round(), table.tokens)


@trainings
def last_layer(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of the attention weights in the last layer.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Shape of the network, a key of `ARMS`.
        column: "from_uniform" (distance from uniform weights, relative to random weights), "on_itself" (mean weight of
            the own position), "on_closing" (mean total weight of closing brackets), or "on_closing_uniform" (the same
            for uniform weights).

    Returns:
        One value per training seed.
    """
    return rows.where("layer", arm=arm).sort_values("layer").groupby("seed")[column].last()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """Return the distance from uniform attention of the layer that is farthest from it.

    The distance is divided by the expected distance between two random attention patterns.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Shape of the network, a key of `ARMS`.

    Returns:
        One ratio per training seed.
    """
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
