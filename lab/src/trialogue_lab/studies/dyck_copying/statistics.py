"""Statistics of the study about networks that copy brackets, with one number per trained network."""

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """Count the tokens that a network copies correctly from its input.

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
    """Count how many fewer tokens a network copies correctly with uniform attention.

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
    """Return a property of the attention weights in the last layer of a network.

    The network is trained to copy bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".
        column: Name of the property. "from_uniform" is the distance from uniform weights, relative to the expected
            distance between random weights. "on_itself" is the mean weight of a position on itself. "on_closing" is the
            mean total weight on closing brackets, and "on_closing_uniform" is this weight if attention is uniform.

    Returns:
        One value per training seed.
    """
    return rows.where("layer", arm=arm).sort_values("layer").groupby("seed")[column].last()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """Return the largest distance between the attention weights of a layer and uniform attention.

    The network is trained to copy bracket strings. The distance is relative to the expected distance between random
    attention weights, and the maximum over layers is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".

    Returns:
        One ratio per training seed.
    """
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
