"""Statistics of the study about generating test cases of a function with Algorithm 1 (backtracking) and baselines.

A test case is a line of Python that asserts the result of the function. Distinct accuracy is the number of different
correct cases divided by the number of requested cases. Queries are model calls. The "pretrained" model is the same in
all repetitions, and a model "from scratch" is trained in every repetition. Statistics have one number per repetition.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, Statistic
from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import DecodingRule, Extent, find_extent

_MODEL = "the pretrained model of the run"
pretrained = {
    "all": Replication("training", "seeds", objects=_MODEL),
    "comparisons": Replication("training", "comparisons", objects=_MODEL),
    "plane": Replication("training", "planes", objects=_MODEL),
}
"""Replications with the pretrained model, by group of decoding methods (see `Extent`)."""
scratch = Replication("training", "scratch_seeds")
"""Replications that train their own language model."""


def _make_statistic(
    role: Role, extent: Extent, compute: "Callable[..., Series[float]]", *args: object, **kwargs: object
) -> Statistic:
    replication = scratch if role == "scratch" else pretrained[extent]
    return replication(compute)(*args, **kwargs)


def _find_common_extent(first: DecodingRule, second: DecodingRule) -> Extent:
    """Return the group of repetitions that measures both decoding methods."""
    return max(find_extent(first), find_extent(second), key=decodings.EXTENTS.index)


def _select_rows(rows: Rows, table: str, role: Role, extent: Extent) -> DataFrame:
    """Select the rows of the repetitions that measure a group of decoding methods."""
    found = rows.where(table, model=role)
    if role == "scratch" or extent == "all":
        return found
    count = rows.config[pretrained[extent].count]
    return found[found.seed.isin(rows.config["seeds"][:count])]


def drawn(rows: Rows, decoding: str, column: str, role: Role, extent: Extent) -> "Series[float]":
    """Return a measurement of a decoding method with which a language model generates test cases.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        decoding: Name of the decoding method.
        column: Name of the column. "accuracy_distinct" is the number of different correct test cases divided by the
            number of requested cases, and "queries" is the number of model calls.
        role: "pretrained" for the pretrained model, or "scratch" for models trained from scratch.
        extent: Repetitions to select: "all", or only those that also measure the group "comparisons" or "plane" (grid
            of top-p and temperature).

    Returns:
        One value per repetition, indexed by seed.
    """
    table = _select_rows(rows, "draw", role, extent)
    return table[table.decoding == decoding].set_index("seed")[column]


def measured(
    decoding: DecodingRule,
    column: str = "accuracy_distinct",
    role: Role = "pretrained",
    extent: Extent | None = None,
) -> Statistic:
    """Create a statistic: a measurement of a decoding method that generates test cases, by default its accuracy.

    Args:
        decoding: The decoding method.
        column: Name of the column. The default "accuracy_distinct" is the number of different correct test cases
            divided by the number of requested cases.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.
        extent: Repetitions to select: "all", or only those that also measure the group "comparisons" or "plane" (grid
            of top-p and temperature). By default, all that measure this method.

    Returns:
        A statistic with one number per repetition.
    """
    extent = extent or find_extent(decoding)
    return _make_statistic(role, extent, drawn, decoding.name, column, role, extent)


def per_query(decoding: DecodingRule, role: Role = "pretrained", extent: Extent | None = None) -> Statistic:
    """Create a statistic: the number of different correct test cases per 100 model calls.

    Args:
        decoding: The decoding method.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.
        extent: Repetitions to select: "all", or only those that also measure the group "comparisons" or "plane" (grid
            of top-p and temperature). By default, all that measure this method.

    Returns:
        A statistic with one number per repetition.
    """
    correct, queries = (
        measured(decoding, column, role, extent) for column in ("distinct_correct", "queries")
    )
    return replace(correct * 100 / queries, logarithmic=False)


def gain(
    first: DecodingRule,
    second: DecodingRule,
    role: Role = "pretrained",
    column: str = "accuracy_distinct",
) -> Statistic:
    """Create a statistic: the difference between two decoding methods in one measurement of their test cases.

    Args:
        first: Method in the minuend.
        second: Method that is subtracted.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.
        column: Name of the column. The default "accuracy_distinct" is the number of different correct test cases
            divided by the number of requested cases.

    Returns:
        A statistic with one number per repetition: first - second.
    """
    extent = _find_common_extent(first, second)
    return measured(first, column, role, extent) - measured(second, column, role, extent)


def gain_per_query(first: DecodingRule, second: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Create a statistic: the difference between two decoding methods in correct test cases per 100 model calls.

    Only different correct test cases are counted.

    Args:
        first: Decoding method in the minuend.
        second: Decoding method that is subtracted.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition: first - second.
    """
    extent = _find_common_extent(first, second)
    return per_query(first, role, extent) - per_query(second, role, extent)


def ratio(first: DecodingRule, second: DecodingRule, column: str, role: Role = "pretrained") -> Statistic:
    """Create a statistic: the ratio between two decoding methods of one measurement of their test cases.

    Args:
        first: Method in the numerator.
        second: Method in the denominator.
        column: Name of the column, for example "queries", the number of model calls.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition: first / second.
    """
    extent = _find_common_extent(first, second)
    return measured(first, column, role, extent) / measured(second, column, role, extent)


def gain_of_depth(role: Role = "pretrained") -> Statistic:
    """Create a statistic: how much more accurate test cases become if the verifier has several layers.

    Algorithm 1 generates text with a verifier, and erases the last tokens when the verifier rejects them. The accuracy
    is the number of different correct test cases, divided by the number of requested cases. The result is (mean
    accuracy with 2, 4 and 8 layers) - (accuracy with one layer).

    Args:
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition.
    """
    second, fourth, eighth = (
        measured(replace(decodings.TRAINED, depth=depth), role=role) for depth in (2, 4, 8)
    )
    return (second + fourth + eighth) / 3 - measured(decodings.TRAINED, role=role, extent="comparisons")


def gain_on_misleading(role: Role = "pretrained") -> Statistic:
    """Create a statistic: how much less a misleading function name harms Algorithm 1 than nucleus sampling.

    A function name is misleading if it belongs to another task. The harm is the decrease in accuracy, the
    number of different correct test cases divided by the number of requested cases. Algorithm 1 generates
    text with a verifier, and erases the last tokens when the verifier rejects them.

    Args:
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition: (harm to nucleus sampling) - (harm to Algorithm 1).
    """
    of_trained, of_nucleus = (
        measured(rule, role=role, extent="comparisons") for rule in (decodings.TRAINED, decodings.BASELINE)
    )
    there = gain(
        decodings.out_of_distribution(decodings.TRAINED),
        decodings.out_of_distribution(decodings.BASELINE),
        role,
    )
    return there - (of_trained - of_nucleus)


def distinct_share(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Create a statistic: the share of different test cases among the correct ones.

    It is the number of different correct test cases divided by the number of all correct ones, or 1 if no case is
    correct.

    Args:
        decoding: The decoding method.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition.
    """

    def distinct(rows: Rows, decoding: str, role: Role) -> "Series[float]":
        found, correct = (
            drawn(rows, decoding, column, role, "all") for column in ("distinct_correct", "correct")
        )
        return (found / correct.where(correct > 0)).fillna(1.0)

    return _make_statistic(role, "all", distinct, decoding.name, role)


def lead_of_best(role: Role = "pretrained") -> Statistic:
    """Create a statistic: the accuracy of default sampling minus that of the best other setting.

    The accuracy is the share of requested test cases that are correct and different. The default is top-p 0.95 and
    temperature 1, without a verifier. To avoid a selection bias, the best other setting of a repetition is chosen by
    its mean over all other repetitions.

    Args:
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition.
    """

    def lead(rows: Rows, role: Role) -> "Series[float]":
        table = _select_rows(rows, "draw", role, "plane").pivot(
            index="seed", columns="decoding", values="accuracy_distinct"
        )
        if len(table) < 2:
            raise NoRows("a single repetition has no other repetitions that choose a setting")
        own = table[decodings.BASELINE.name].to_numpy(dtype=float)
        names = [rule.name for rule in (*decodings.PLANE, decodings.GREEDY) if rule != decodings.BASELINE]
        others = table[names].to_numpy(dtype=float)
        chosen = [np.delete(others, place, 0).mean(0).argmax() for place in range(len(own))]
        return Series(own - others[np.arange(len(own)), chosen], index=table.index)

    return _make_statistic(role, "plane", lead, role)


def validation(role: Role, /, **values: object) -> Statistic:
    """Create a statistic: the accuracy of trained verifiers on validation examples.

    A verifier classifies prefixes of test cases as correct or erroneous.

    Args:
        role: "pretrained" for the pretrained model, or "scratch" for models trained from scratch.
        **values: Values of columns that select the verifiers, for example `layer=24` or `depth=1`.

    Returns:
        A statistic with one number per repetition.
    """

    def validated(rows: Rows, /, role: Role, **values: object) -> "Series[float]":
        return rows.where("probe", model=role, **values).groupby("seed").validation_accuracy.mean()

    return _make_statistic(role, "all", validated, role, **values)


def timed(decoding: str, column: str, role: Role = "pretrained") -> Statistic:
    """Create a statistic: the cost of completions with test cases that are generated one at a time.

    Args:
        decoding: Name of the decoding method, or "one at a time" for all methods.
        column: Name of the cost.
            - "queries": model calls per completion.
            - "cpu_seconds": processor time per completion.
            - "milliseconds": processor time per model call.
            - "rank_correlation": rank correlation between model calls and processor time.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition.
    """

    def spent(rows: Rows, decoding: str, column: str, role: Role) -> "Series[float]":
        table = _select_rows(rows, "speed", role, "comparisons")
        table = table[table.decoding == decoding].set_index("seed")
        return table.assign(milliseconds=1000 * table.cpu_seconds / table.queries)[column]

    return _make_statistic(role, "comparisons", spent, decoding, column, role)


def milliseconds(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Create a statistic: processor milliseconds per model call, for test cases that are generated in batches.

    Args:
        decoding: The decoding method.
        role: "pretrained" (default) for the pretrained model, or "scratch" for models trained from scratch.

    Returns:
        A statistic with one number per repetition.
    """
    spent, queries = (measured(decoding, column, role) for column in ("cpu_seconds", "queries"))
    return replace(spent * 1000 / queries, logarithmic=False)
