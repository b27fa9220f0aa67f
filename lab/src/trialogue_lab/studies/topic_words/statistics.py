"""Statistics of the study about cosine similarities of named words in a pretrained model."""

from trialogue_lab.ledger import NoRows, Rows, exact


@exact
def mean_cosine(rows: Rows, same: bool) -> float:
    """Return the mean cosine of the embeddings of two named words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        same: Whether the two words belong to the same topic.
    """
    return float(rows.require("pair", same=same).cosine.mean())


@exact
def smallest_lead(rows: Rows) -> float:
    """Return the smallest difference between the mean cosine within a topic and the mean cosine to other topics.

        minimum over topics of (mean cosine within the topic - mean cosine of its words and other words)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The smallest difference over topics. If it is positive, the words of every topic are closest to each other on
        average.

    Raises:
        NoRows: There are no measurements.
    """
    table = rows["pair"]
    leads = []
    for topic in {*table.first_topic, *table.second_topic}:
        touching = table[(table.first_topic == topic) | (table.second_topic == topic)]
        means = touching.groupby("same").cosine.mean()
        leads.append(float(means[True] - means[False]))
    if not leads:
        raise NoRows("no pairs of words")
    return min(leads)
