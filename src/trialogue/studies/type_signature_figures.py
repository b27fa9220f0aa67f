"""Figures of the study `type-signature`: what is hard to compute, and what is hard to learn."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.rows import kind
from trialogue.studies.type_signature_rows import (
    FACTORS_FIRST,
    HIDDEN,
    PRODUCT_FIRST,
    RHO,
    STREAMS,
    TESTS,
    TRIAL_DIVISION,
    costs,
    network_digits,
    networks,
)

_COLORS = {PRODUCT_FIRST: "#cf222e", FACTORS_FIRST: "#1a7f37", HIDDEN: "#1f6feb"}
_ROUTINES = {
    TRIAL_DIVISION: ("#cf222e", "o-", "[pq, p, q]: trial divisions"),
    RHO: ("#bf8700", "s-", "[pq, p, q]: iterations of rho"),
    TESTS: ("#1a7f37", "^-", "[p, q, pq]: primality tests"),
}
_BUDGETS = {4: "#9ec5fe", 5: "#1f6feb", 6: "#0a3069"}


def _limits(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(12.4, 3.9), layout="constrained")
    left, middle, right = drawing.subplots(1, 3)
    for routine, (color, style, label) in _ROUTINES.items():
        table = costs(rows, routine)
        left.plot(table.columns, table.mean(), style, ms=4, lw=1.2, color=color, label=label)
        left.fill_between(table.columns, table.min(), table.max(), color=color, alpha=0.15, lw=0)
    left.set(yscale="log", xlabel="digits of the primes", ylabel="operations for one digit")
    left.set_title("First digit of the second number", fontsize=10, loc="left")
    left.legend(fontsize=8, loc="upper left")
    chances, tight = kind(rows, "chances"), kind(rows, "tight")
    root = np.linspace(0, 1, 200)
    middle.plot(root, np.sqrt(root), color="#24292f", lw=1.2, label=r"bound $\sqrt{\epsilon}$")
    middle.plot(root, root, color="#8c959f", lw=1, ls="--", label=r"chances 0 or 1: $\epsilon$")
    middle.scatter(
        chances.epsilon, chances.overlap, s=4, color="#1f6feb", alpha=0.25, lw=0, label="random chances"
    )
    middle.scatter(
        tight.bound**2, tight.overlap, s=26, color="#cf222e", zorder=3, label="k/N on k semiprimes"
    )
    middle.set(xlabel=r"mean chance to factor $\epsilon$", ylabel="largest overlap 1 - TV")
    middle.set_title("The best that cheating reaches, exact", fontsize=10, loc="left")
    middle.legend(fontsize=8, loc="lower right")
    support = kind(rows, "support")
    # Of one digit every power is one division.
    support = support[support.digits > 1]
    for exponent, color in _BUDGETS.items():
        chosen = support[support.exponent == exponent].sort_values("digits")
        right.plot(
            chosen.digits, chosen.share, "o-", ms=4, lw=1.2, color=color, label=f"$n^{exponent}$ divisions"
        )
    right.set(xlabel="digits n of the primes", ylabel="overlap with the law", ylim=(-0.03, 1.05))
    right.set_title("Correct tuples only, factored on a budget", fontsize=10, loc="left")
    right.legend(fontsize=8)
    _grid(left, middle, right)
    return drawing


def _learned(rows: DataFrame) -> Drawing:
    sizes = network_digits(rows)
    drawing = Drawing(figsize=(12.4, 3.9), layout="constrained")
    left, *rest = drawing.subplots(
        1, 1 + len(sizes[1:]), squeeze=False, width_ratios=[1.1, *[1.3] * len(sizes[1:])]
    )[0]
    places = np.arange(len(sizes), dtype=float)
    for index, stream in enumerate(STREAMS):
        groups = [networks(rows, stream, digits).valid for digits in sizes]
        shift = places + 0.27 * (index - 1)
        color = _COLORS[stream]
        left.bar(shift, [group.mean() for group in groups], 0.25, color=color, alpha=0.55, label=stream)
        for place, group in zip(shift, groups, strict=True):
            left.plot([place] * len(group), group, "o", ms=3, color=color)
    left.set_xticks(places, [f"n = {digits}" for digits in sizes])
    left.set(ylabel="share of valid tuples emitted", ylim=(0, 1.32), yticks=(0, 0.25, 0.5, 0.75, 1))
    left.set_title("Networks, one dot per training", fontsize=10, loc="left")
    left.legend(fontsize=8, loc="upper right")
    positions = kind(rows, "position")
    for axes, digits in zip(rest, sizes[1:], strict=True):
        for stream in STREAMS:
            chosen = positions[(positions.stream == stream) & (positions.digits == digits)]
            mean = chosen.groupby("position").excess.mean()
            axes.plot(mean.index, mean, "o-", ms=3, lw=1.2, color=_COLORS[stream], label=stream)
        for edge in (0, digits, 2 * digits, 3 * digits, 4 * digits):
            axes.axvline(edge - 0.5, color="#8c959f", lw=0.7, ls=":")
        axes.set(xlabel="position (hidden tokens below 0)", ylabel="excess over the law (nats)")
        axes.set_title(f"Where they miss, n = {digits}", fontsize=10, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _grid(left, *rest)
    return drawing


def _grid(*axes: Axes) -> None:
    for one in axes:
        one.grid(color="#dddddd", lw=0.6)
        one.set_axisbelow(True)


FIGURES = (
    Figure(
        name="limits",
        caption="Left: operations for the first digit of the tuple's second number, given the first; means over "
        "tuples, bands from the least to the most of the seeds. Middle: the largest overlap with the uniform law of "
        "[pq, p, q] over all generators with given chances to factor, against their mean ε. Right: the overlap of a "
        "generator that writes correct tuples only, and factors by trial division within a polynomial budget.",
        draw=_limits,
    ),
    Figure(
        name="networks",
        caption="Left: valid tuples among those emitted, by digits of the primes. Others: by position of the sequence, "
        "how many nats a network loses against the law, mean over trainings; dotted lines are n tokens apart. Product "
        "first the first factor starts at 2n, factors first the product does; the hidden stream lies below 0.",
        draw=_learned,
    ),
)
