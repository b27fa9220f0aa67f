"""Tables and figures of the study: what is hard to compute, and what is hard to learn."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.type_signature import config
from trialogue_lab.studies.type_signature.statistics import cost, learned, missed

_COLORS = {config.PRODUCT_FIRST: BAD, config.FACTORS_FIRST: GOOD, config.HIDDEN: OURS}
_ROUTINES = {
    config.TRIAL_DIVISION: (BAD, "o-", "[pq, p, q]: trial divisions"),
    config.RHO: (COLORS[3], "s-", "[pq, p, q]: iterations of rho"),
    config.TESTS: (GOOD, "^-", "[p, q, pq]: primality tests"),
}
_NETWORKS = {"valid": "valid tuples", "overlap": "overlap with the law", "excess": "KL (nats)"}


def _sizes(rows: Rows, kind: str) -> list[int]:
    """The numbers of digits of the primes, as measured."""
    return sorted(rows[kind].digits.unique().tolist())


@result_table(
    "Random primes by trial: primes, and expected trials per digit",
    'Section "Randomized Tasks"',
    rows_are="digits",
    note="Exact. At most n ln 10, about.",
)
def _trials_table(rows: Rows) -> DataFrame:
    by_size = rows["trials"].sort_values("position").groupby("digits")
    table = by_size.agg(primes=("primes", "first"), first=("trials", "first"), last=("trials", "last"))
    table.index = [f"n = {digits}" for digits in table.index]
    return table.set_axis(["primes", "trials, first digit", "trials, last digit"], axis=1)


@result_table(
    "Random primes by density: total variation of the first digits",
    'Appendix, "Generating primes deterministically"',
    rows_are="digits",
    note="Exact. Once the last digits are counted the error stays what it was.",
)
def _density_table(rows: Rows) -> DataFrame:
    table = rows["density"].pivot_table("variation", ["digits", "length"], "counted")
    table["uniform"] = rows["density"].groupby(["digits", "length"]).uniform.first()
    table.index = [f"n = {digits}, first {length}" for digits, length in table.index]
    return table.set_axis(["integral alone", "last four counted", "uniform digits"], axis=1)


@result_table(
    "Cost of the first digit of the second number of the tuple",
    'Section "Factoring"',
    rows_are="primes",
    note="Means over tuples; ± is the deviation over seeds. The post assumes that every routine is slow; two are "
    "counted.",
)
def _costs_table(rows: Rows) -> Cells:
    return {
        f"n = {digits}": {
            f"{routine}, {'factors' if routine == config.TESTS else 'product'} first": cost(routine, digits)
            for routine in config.ROUTINES
        }
        for digits in _sizes(rows, "cost")
    }


@result_table(
    "Laws of [pq, p, q] token by token",
    'Sections "Factoring" and "Ways to get around this"',
    rows_are="oracle",
    note="By enumeration; factorings are those of the whole enumeration, each prefix asked once.",
)
def _laws_table(rows: Rows) -> Cells:
    lines = {f"{law['stream']}, n = {law['digits']}": law for law in rows["law"].to_dict("records")}
    lines |= {
        f"seed of {law['bits']} bits, n = {law['digits']}": law for law in rows["seed"].to_dict("records")
    }
    return {
        label: {"TV": law["variation"], "N / 2^b": law.get("bound"), "factorings": law["factorings"]}
        for label, law in lines.items()
    }


@result_table(
    "Twenty questions by what fits the transcript: looks for one answer, mean over a game",
    'Section "Where this comes up"',
    rows_are="objects",
    note="Exact. Who fixed an object looks up one answer.",
)
def _questions_table(rows: Rows) -> DataFrame:
    table = rows["questions"].set_index("objects")[["variation", "looked_up"]]
    return table.set_axis(["TV", "answers looked up"], axis=1)


@result_table(
    "Networks trained on the same number of tuples",
    "not in the post",
    rows_are="trained on",
    note="± is the deviation over trainings. With a hidden stream the overlap counts true hidden streams only, and "
    "sequences are half as long again: it also computes more per tuple.",
)
def _networks_table(rows: Rows) -> Cells:
    return {
        f"n = {digits}, {stream}": {
            head: learned(column, stream, digits) for column, head in _NETWORKS.items()
        }
        for digits in _sizes(rows, "network")
        for stream in config.STREAMS
    }


TABLES = (_trials_table, _density_table, _costs_table, _laws_table, _questions_table, _networks_table)


@figure(
    "limits",
    "Left: operations for the first digit of the tuple's second number, given the first; means over "
    "tuples and seeds, bars of one deviation over seeds. Middle: the largest overlap with the uniform law of "
    "[pq, p, q] over all generators with given chances to factor, against their mean ε. Right: the overlap of a "
    "generator that writes correct tuples only, and factors by trial division within a polynomial budget.",
)
def _limits_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    sizes = _sizes(rows, "cost")
    for routine, (color, style, label) in _ROUTINES.items():
        costs = [cost(routine, digits) for digits in sizes]
        spread(left, sizes, costs, rows, style, color=color, label=label)
    left.set(yscale="log", xlabel="digits of the primes", ylabel="operations for one digit")
    finish(left, "First digit of the second number", legend="upper left")
    chances, tight, root = rows["chances"], rows["tight"], np.linspace(0, 1, 200)
    middle.plot(root, np.sqrt(root), color="black", label=r"bound $\sqrt{\epsilon}$")
    middle.plot(root, root, color=QUIET, ls="--", label=r"chances 0 or 1: $\epsilon$")
    middle.plot(chances.epsilon, chances.overlap, ".", ms=3, alpha=0.3, color=OURS, label="random chances")
    middle.plot(tight.bound**2, tight.overlap, "o", color=BAD, label="k/N on k semiprimes")
    middle.set(xlabel=r"mean chance to factor $\epsilon$", ylabel="largest overlap 1 - TV")
    finish(middle, "The best that cheating reaches, exact", legend="lower right")
    # Of one digit every power is one division.
    shares = rows["support"].query("digits > 1").pivot_table("share", "digits", "exponent")
    for exponent, color in zip(shares, COLORS[4:], strict=False):
        right.plot(shares.index, shares[exponent], "o-", color=color, label=f"$n^{exponent}$ divisions")
    right.set(xlabel="digits n of the primes", ylabel="overlap with the law", ylim=(-0.03, 1.05))
    finish(right, "Correct tuples only, factored on a budget", legend=True)
    return drawing


@figure(
    "networks",
    "Left: valid tuples among those emitted, by digits of the primes. Others: by position of the sequence, "
    "how many nats a network loses against the law, mean over trainings, bars of one deviation; dotted lines are n "
    "tokens apart. Product first the first factor starts at 2n, factors first the product does; the hidden stream "
    "lies below 0.",
)
def _networks_figure(rows: Rows) -> Drawing:
    sizes = _sizes(rows, "network")
    drawing, (left, *rest) = panels(1 + len(sizes[1:]), width=4.1, height=3.9)
    for shift, (stream, color) in enumerate(_COLORS.items(), start=-1):
        groups = [learned("valid", stream, digits) for digits in sizes]
        places = [digits + 0.2 * shift for digits in sizes]
        for place, group in zip(places, groups, strict=True):
            left.plot([place] * len(group(rows)), group(rows), ".", color=color, alpha=0.4)
        spread(left, places, groups, rows, "o", color=color, label=stream)
    left.set(xlabel="digits n of the primes", ylabel="share of valid tuples emitted", ylim=(-0.03, 1.3))
    left.set(xticks=sizes, yticks=(0, 0.25, 0.5, 0.75, 1), title="Networks, one dot per training")
    left.legend(loc="upper right")
    for axes, digits in zip(rest, sizes[1:], strict=True):
        for edge in range(5):
            axes.axvline(edge * digits - 0.5, color=QUIET, lw=0.7, ls=":")
        for stream, color in _COLORS.items():
            table = rows.where("position", stream=stream, digits=digits)
            positions = sorted(table.position.unique().tolist())
            lost = [missed(stream, digits, position) for position in positions]
            spread(axes, positions, lost, rows, color=color, ms=3, label=stream)
        axes.set(xlabel="position (hidden tokens below 0)", ylabel="excess over the law (nats)")
        axes.set_title(f"Where they miss, n = {digits}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return drawing


FIGURES = (_limits_figure, _networks_figure)
