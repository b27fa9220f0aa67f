"""Statistics of the study, with one number per trained network."""

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """Count the tokens that a network predicts correctly after it was trained to copy its input.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".
        column: "copied" (default) for the trained network, or "uniform" for the same network with uniform attention
            weights.

    Returns:
        Number of correct predictions and number of all tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts((table[column] * table.tokens).round(), table.tokens)


@trainings
def lost(rows: Rows, arm: str) -> Counts:
    """Count how many fewer tokens a network copies correctly if its attention weights are made uniform.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".

    Returns:
        Decrease of the number of correct predictions and number of all tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts(((table.copied - table.uniform) * table.tokens).round(), table.tokens)


@trainings
def last_layer(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of the attention weights in the last layer of a network trained to copy bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".
        column: "from_uniform" for the distance from uniform weights, relative to the expected distance between random
            weights. "on_itself" for the mean weight of a position on itself. "on_closing" for the mean total weight on
            closing brackets, or "on_closing_uniform" for this weight if attention is uniform.

    Returns:
        One value per training seed.
    """
    return rows.where("layer", arm=arm).sort_values("layer").groupby("seed")[column].last()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """Return the largest distance of a layer's attention weights from uniform attention.

    The network is trained to copy bracket strings. The distance is divided by the expected distance between two random
    attention patterns, and the maximum over layers is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".

    Returns:
        One ratio per training seed.
    """
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
