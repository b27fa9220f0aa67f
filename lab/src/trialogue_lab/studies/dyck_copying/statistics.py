"""Statistics of the study about networks that copy brackets, with one number per trained network."""

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """Count the tokens that a network, trained to copy bracket strings, copies correctly.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".
        column: "copied" (default) for the trained network, or "uniform" for the same network with uniform attention
            weights.

    Returns:
        Number of correct predictions and number of tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts((table[column] * table.tokens).round(), table.tokens)


@trainings
def lost(rows: Rows, arm: str) -> Counts:
    """Count the tokens that a network no longer copies correctly if its attention is made uniform.

        lost = (correct predictions of the trained network) - (correct predictions with uniform attention)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".

    Returns:
        The difference and the number of tokens, per training seed.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts(((table.copied - table.uniform) * table.tokens).round(), table.tokens)


@trainings
def last_layer(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured property of the attention weights in a network's last layer.

    The network is trained to copy bracket strings.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".
        column: Name of the property. "from_uniform" is the squared distance from uniform weights, divided by its
            expectation for two random patterns. "on_itself" is the mean weight of a position on itself. "on_closing" is
            the mean total weight on closing brackets. "on_closing_uniform" is the same for uniform weights.

    Returns:
        One number per training seed.
    """
    return rows.where("layer", arm=arm).sort_values("layer").groupby("seed")[column].last()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """Return the squared distance from uniform attention of the least uniform layer of a network, as a ratio.

        maximum over layers of |A - U|^2 / (expected |A - B|^2 of random attention weights A and B)

    A are the attention weights of a layer, and U are uniform weights. The network is trained to copy bracket strings.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the architecture, for example "4 layers" or "1 layer, no residual".

    Returns:
        One ratio per training seed.
    """
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
