"""Tables and figures of the study."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.generation.cloning.samplers import SAMPLERS
from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, finish, panels, result_table, spread
from trialogue_lab.studies.clones import statistics as stats
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, TEXT

_LOSS_AXES = {"xscale": "log", "xlabel": "step", "ylabel": "loss (nats per token)"}
_TITLES = {PUBLISHED: "Metropolis, as published", GIBBS: "Gibbs"}


def make_network_label(rows: Rows, name: str) -> str:
    """Return the label of a network in tables and figures, for example "2 factored layers: order 3".

    The order is the largest number of tokens that interact in the network.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: "text", "encoder", or the name of a network with factored attention, for example "layers-2".
    """
    if name in (ENCODER, TEXT):
        return {ENCODER: "encoder: all orders", TEXT: "the text itself"}[name]
    order = rows.where("network", network=name).order.iloc[0]
    orders = "all orders" if np.isnan(order) else f"order {order:.0f}"
    layers = int(name.removeprefix("layers-"))
    return f"{layers} factored layer{'s' * (layers > 1)}: {orders}"


def _select_labelled_clones(rows: Rows) -> DataFrame:
    """Return one row per clone (sampled set of sequences), Markov chain and number of sweeps, with a label."""
    table = rows["clone"]
    names = zip(table.clone, table.sampler, table.sweeps, strict=True)
    labels = [
        f"{make_network_label(rows, clone)}, {sampler}, {sweeps} sweeps" for clone, sampler, sweeps in names
    ]
    return table.set_axis(labels, axis=0)


@result_table(
    "Networks on held-out text",
    "Figure 3a",
    row_heading="network",
    note="nats per token, with one token masked at a time; mean ± one standard deviation over trainings",
)
def _networks(rows: Rows) -> Cells:
    return {
        make_network_label(rows, name): {"loss": stats.network_loss(name)} for name in stats.list_clones(rows)
    }


@result_table(
    "Chains that sample the clones",
    "Figure 3b and section A.3",
    row_heading="clone",
    note="acceptance: share of updates that changed their token; ESS, R-hat and drift (± standard error): of the "
    "energy after the first half of the sweeps; own loss: loss of the network on its own clone in nats per token, "
    "which is below its loss on held-out text if the clone is sharper than the text; token entropy: in nats",
)
def chains_table(rows: Rows) -> DataFrame:
    """Return convergence diagnostics of the Markov chains that sample clones from trained networks.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Table with one row per network, Markov chain and number of sweeps, and columns such as "acceptance", "ESS" and
        "R-hat". A sweep consists of N single-token updates of a sequence of N tokens.
    """
    columns = {
        "acceptance": "acceptance",
        "effective_sample_size": "ESS",
        "r_hat": "R-hat",
        "drift": "drift",
        "drift_error": "±",
        "own_loss": "own loss",
        "token_entropy": "token entropy",
    }
    return _select_labelled_clones(rows)[list(columns)].astype(float).rename(columns=columns)


@result_table(
    "Sequences of the clones",
    "Table 1",
    row_heading="clone",
    note="all chains start from the same held-out sequence",
)
def _sequences(rows: Rows) -> DataFrame:
    return _select_labelled_clones(rows).example.str.split().str.join(" ").to_frame("a sequence")


@result_table(
    "Steps at which losses on clones reach their minimum",
    "Figures 1 and 4",
    row_heading="clone",
    note="first step at which the loss of an encoder is within 5 % of its total fall from its minimum; mean ± one "
    "standard deviation over orders of the data, with the same initial weights",
)
def saturations_table(rows: Rows) -> Cells:
    """Return a table of the training steps at which the losses on all clones stop falling.

    An encoder is trained on a text, and its loss on each clone is recorded. A clone is a set of sequences sampled from
    another network trained on the text. A loss stops falling at the step at which 95 % of its total decrease is
    complete.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Statistics by clone (rows) and by the Markov chain that sampled the clone (columns).
    """
    return {
        make_network_label(rows, name): {
            title: stats.saturation(name, sampler) for sampler, title in _TITLES.items()
        }
        for name in stats.list_clones(rows)
    }


TABLES = (_networks, chains_table, saturations_table, _sequences)


def _draw_band(axes: Axes, table: DataFrame, color: str, label: str, style: str = "-") -> None:
    """Draw a curve by training step, as the mean and standard deviation over seeds."""
    steps, mean, deviation = np.maximum(table.index, 0.7), table.mean(axis=1), table.std(axis=1)
    axes.plot(steps, mean, style, color=color, label=label)
    axes.fill_between(steps, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)


@figure(
    "followed",
    "Loss of an encoder during its training, on clones of growing order (first number of sweeps) and on the text "
    "itself. Means over orders of the data, with bands of one standard deviation. Dotted: steps at which losses reach "
    "their minimum. Levels differ because clones have different entropies.",
)
def followed_figure(rows: Rows) -> Drawing:
    """Draw the losses of an encoder against the training step, with one panel per Markov chain.

    The losses are measured on the training text, and on sequences that the Markov chain sampled from other networks.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    drawing, axes = panels(2, width=5.0, height=4.0)
    for panel, (sampler, title) in zip(axes, _TITLES.items(), strict=True):
        for name, color in zip(stats.list_clones(rows), COLORS, strict=False):
            _draw_band(
                panel, stats.select_loss_curves(rows, name, sampler), color, make_network_label(rows, name)
            )
            panel.axvline(stats.saturation(name, sampler)(rows).mean(), color=color, lw=0.8, ls=":")
        _draw_band(
            panel,
            stats.select_loss_curves(rows, TEXT, sampler),
            "black",
            make_network_label(rows, TEXT),
            "--",
        )
        finish(panel, f"Clones sampled by {title}", **_LOSS_AXES)
    axes[0].legend()
    return drawing


@figure(
    "sweeps",
    "Left and middle: mean energy (the negative sum of raw scores) of the sequences by sweep, starting from held-out "
    "text. Dotted: sweeps after which clones are stored. Right: losses of the followed encoder on clones after the "
    "first and the last of these sweeps.",
)
def _sweeps(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.2, height=3.9)
    numbers = rows.config["sweeps"]
    first, last = numbers[0], numbers[-1]
    for panel, (sampler, title) in zip((left, middle), _TITLES.items(), strict=True):
        for name, color in zip(stats.list_clones(rows), COLORS, strict=False):
            table = rows.where("energy", clone=name, sampler=sampler).sort_values("sweep")
            label = make_network_label(rows, name)
            panel.errorbar(table.sweep, table.energy, table.error, fmt="-", color=color, label=label)
        for number in numbers:
            panel.axvline(number, color=QUIET, lw=0.8, ls=":")
        finish(panel, f"Chains: {title}", xlabel="sweep", ylabel="mean energy")
    for name, color in zip(stats.list_clones(rows), COLORS, strict=False):
        for number, style in ((first, "-"), (last, "--")):
            table = stats.select_loss_curves(rows, name, PUBLISHED, number)
            label = make_network_label(rows, name) if number == first else ""
            right.plot(np.maximum(table.index, 0.7), table.mean(axis=1), style, color=color, label=label)
    finish(right, f"Loss on clones after {first} (solid) and {last} sweeps", **_LOSS_AXES)
    left.legend()
    return drawing


@figure(
    "twin",
    "Left: losses of an encoder trained on a distribution with four-body energies, on this distribution and on its "
    "exact truncations to two and three bodies, without sampling error. Dotted: smallest possible loss. Dashed: step "
    "of the minimum. Right: distance of the invariant distribution of each sampler from a distribution with k-body "
    "energies whose exact conditionals it uses.",
)
def _twin_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.0, height=4.0)
    for order, color in zip(rows.config["twin_orders"], COLORS, strict=False):
        _draw_band(left, stats.select_twin_curves(rows, order), color, f"at most {order} bodies")
        left.axhline(rows.where("twin-law", order=order).entropy.mean(), color=color, lw=0.8, ls=":")
        left.axvline(stats.twin_saturation(order)(rows).mean(), color=color, lw=0.8, ls="--")
    left.set(xscale="log", xlabel="step", ylabel="exact loss (nats per token)")
    finish(left, "Encoder trained on a four-body distribution", legend=True)
    orders = rows.config["twin_orders"]
    for shift, (sampler, color) in enumerate(zip(SAMPLERS, COLORS, strict=False)):
        cells = [stats.distance(order, sampler) for order in orders]
        places = [place + 0.2 * (shift - 1.5) for place in range(len(orders))]
        spread(right, places, cells, rows, "o", color=color, label=sampler.replace("_", " "))
    right.set_xticks(range(len(orders)), [f"{order} bodies" for order in orders])
    finish(
        right,
        "Samplers with exact conditionals",
        legend=True,
        ylabel="total variation distance",
        ylim=(-0.03, 1),
    )
    return drawing


FIGURES = (followed_figure, _sweeps, _twin_figure)
