"""Statistic of the study that `dyck-attention` does not have: the accuracy of a network as a share."""

from trialogue_lab.ledger import Counts, Rows
from trialogue_lab.studies.dyck_attention.statistics import minimal, trainings


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """Return the accuracy on closing brackets at the trained length as a share, so that its interval stays below 1.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Way of training, for example "words".

    Returns:
        The accuracy as the successes of one trial, per training seed. The rows do not hold the number of brackets.
    """
    shares = minimal(arm, "inside")(rows)
    return Counts(shares, shares * 0 + 1)
