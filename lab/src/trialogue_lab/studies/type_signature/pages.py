"""Tables and figures of the study: costs, overlaps, and trained networks."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.type_signature import config
from trialogue_lab.studies.type_signature.statistics import cost, learned

_COLORS = {config.PRODUCT_FIRST: BAD, config.FACTORS_FIRST: GOOD, config.HIDDEN: OURS}
_ROUTINES = {
    config.TRIAL_DIVISION: (BAD, "o-", "[pq, p, q]: trial divisions"),
    config.RHO: (COLORS[3], "s-", "[pq, p, q]: iterations of rho"),
    config.TESTS: (GOOD, "^-", "[p, q, pq]: primality tests"),
}
_NETWORKS = {"valid": "valid tuples", "overlap": "overlap with the tuples", "excess": "KL (nats)"}


@result_table(
    "Random primes by density: total variation of the first digits",
    'Appendix, "Generating primes deterministically"',
    row_heading="digits",
    note="Exact. The error stays constant over the last digits, if these are counted.",
)
def _density_table(rows: Rows) -> DataFrame:
    table = rows["density"].pivot_table("variation", ["digits", "length"], "counted")
    table["uniform"] = rows["density"].groupby(["digits", "length"]).uniform.first()
    table.index = [f"n = {digits}, first {length}" for digits, length in table.index]
    return table.set_axis(["integral only", "last four digits counted", "uniform digits"], axis=1)


@result_table(
    "Networks trained on the same number of tuples",
    "not in the post",
    row_heading="training data",
    note="± one standard deviation over trainings. With a hidden stream, the overlap counts true hidden streams only. "
    "Its sequences are half as long again, so that more is computed per tuple.",
)
def _networks_table(rows: Rows) -> Cells:
    return {
        f"n = {digits}, {stream}": {
            head: learned(column, stream, digits) for column, head in _NETWORKS.items()
        }
        for digits in rows.distinct("network", "digits")
        for stream in config.STREAMS
    }


TABLES = (_density_table, _networks_table)


@figure(
    "limits",
    "Left: operations for the first digit of the second number of the tuple, given the first. Means over tuples and "
    "seeds, with error bars of one standard deviation over seeds. Middle: largest overlap with the uniform "
    "distribution of [pq, p, q] over all generators with given factoring probabilities, by their mean ε. Right: "
    "overlap of a generator that writes correct tuples only, and factors by trial division within a polynomial budget.",
)
def _limits_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    sizes = rows.distinct("cost", "digits")
    for routine, (color, style, label) in _ROUTINES.items():
        costs = [cost(routine, digits) for digits in sizes]
        spread(left, sizes, costs, rows, style, color=color, label=label)
    left.set(yscale="log", xlabel="digits of the primes", ylabel="operations for one digit")
    finish(left, "First digit of the second number", legend="upper left")
    chances, tight, root = rows["chances"], rows["tight"], np.linspace(0, 1, 200)
    middle.plot(root, np.sqrt(root), color="black", label=r"bound $\sqrt{\epsilon}$")
    middle.plot(root, root, color=QUIET, ls="--", label=r"probabilities 0 or 1: $\epsilon$")
    middle.plot(
        chances.epsilon, chances.overlap, ".", ms=3, alpha=0.3, color=OURS, label="random probabilities"
    )
    middle.plot(tight.bound**2, tight.overlap, "o", color=BAD, label="k/N on k semiprimes")
    middle.set(xlabel=r"mean factoring probability $\epsilon$", ylabel="largest overlap 1 - TV")
    finish(middle, "Largest overlap of a cheating generator", legend="lower right")
    # With one digit, every budget is one division.
    shares = rows["support"].query("digits > 1").pivot_table("share", "digits", "exponent")
    for exponent, color in zip(shares, COLORS[4:], strict=False):
        right.plot(shares.index, shares[exponent], "o-", color=color, label=f"$n^{exponent}$ divisions")
    right.set(xlabel="digits n of the primes", ylabel="overlap with the tuples", ylim=(-0.03, 1.05))
    finish(right, "Correct tuples only, limited divisions", legend=True)
    return drawing


@figure(
    "networks",
    "Left: share of valid tuples among samples, by digits of the primes. Others: KL divergence of the network by "
    "position of the sequence, mean over trainings, with error bars of one standard deviation. Dotted lines are n "
    "tokens apart. At position 2n, the first factor starts if the product is first, and the product if the factors are "
    "first. The hidden stream is at negative positions.",
)
def _networks_figure(rows: Rows) -> Drawing:
    sizes = rows.distinct("network", "digits")
    drawing, (left, *rest) = panels(1 + len(sizes[1:]), width=4.1, height=3.9)
    for shift, (stream, color) in enumerate(_COLORS.items(), start=-1):
        table = rows.where("network", stream=stream)
        places = table.digits + 0.2 * shift
        left.plot(places, table.valid, ".", color=color, alpha=0.4)
        found = table.valid.groupby(places).agg(["mean", "std"])
        left.errorbar(found.index, found["mean"], found["std"], fmt="o", color=color, label=stream)
    left.set(xlabel="digits n of the primes", ylabel="share of valid tuples", xticks=sizes, ylim=(-0.03, 1.3))
    finish(left, "Networks (one dot per training)", legend="upper right")
    for axes, digits in zip(rest, sizes[1:], strict=True):
        for edge in range(5):
            axes.axvline(edge * digits - 0.5, color=QUIET, lw=0.7, ls=":")
        for stream, color in _COLORS.items():
            table = rows.where("position", stream=stream, digits=digits)
            found = table.groupby("position").excess.agg(["mean", "std"])
            axes.errorbar(found.index, found["mean"], found["std"], fmt="o-", color=color, ms=3, label=stream)
        axes.set(xlabel="position (hidden tokens below 0)", ylabel="KL divergence (nats)")
        axes.set_title(f"Divergence by position, n = {digits}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return drawing


FIGURES = (_limits_figure, _networks_figure)
