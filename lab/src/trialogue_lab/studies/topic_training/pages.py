"""Figures and tables of the study."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import BAD, COLORS, OURS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.topic_training.config import DIAGONAL_RATES, FIGURE_RATE, SETTINGS, SGD_RATES
from trialogue_lab.studies.topic_training.statistics import attention

_CLASSES = {"same word": "same_word", "same topic": "same_topic", "other topics": "other"}
_TABLE_2_1 = {
    "Adam .003": (0.00759, 0.0108, 0.00689),
    "Adam .01": (0.00811, 0.010, 0.00707),
    "Adam .03": (0.00453, 0.0116, 0.00665),
    "SGD .01": (0.0105, 0.0106, 0.00673),
    "SGD .03": (0.0140, 0.0103, 0.00641),
}
_TABLE_2_2 = {"Adam .003": (0.0916, 0.00185, 0.00256), "Adam .01": (0.0918, 0.00182, 0.00256)}
_FIXED = ", diagonal values"
_MATRICES = {"all": "$W_E^T W_E$", "with L2": "$W_V$, L2", "without L2": "$W_V$"}
_DIAGONAL = [("adam", rate) for rate in DIAGONAL_RATES]


def _label(optimizer: str, rate: float) -> str:
    return f"{'Adam' if optimizer == 'adam' else 'SGD'} {f'{rate:g}'.lstrip('0')}"


@figure(
    "matrices",
    "Trained matrices between the hundred words of ten topics, for the first seed. Each matrix has a separate colour "
    "scale, and positive entries are red. Blocks of words of one topic appear in all trainings that have made "
    "progress.",
)
def _matrices_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(4, 3, width=3.4, height=2.7)
    words = [column for column in rows["matrix"] if str(column).startswith("word_")]
    trainings = [
        (name, loss, *setting)
        for name in _MATRICES
        for loss in ("CE", "squared")
        for setting in (
            ("adam", FIGURE_RATE),
            ("sgd", SGD_RATES["embeddings" if name == "all" else "values"][loss]),
        )
    ]
    for panel, (name, loss, optimizer, rate) in zip(axes, trainings, strict=True):
        chosen = rows.where("matrix", name=name, loss=loss, optimizer=optimizer, rate=rate)
        matrix = chosen.sort_values("row")[words].to_numpy(dtype=float)
        most = float(np.quantile(np.abs(matrix), 0.99)) or 1.0
        shown = panel.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest")
        drawing.colorbar(shown, ax=panel, shrink=0.8).ax.tick_params(labelsize=9)
        panel.set(xticks=[], yticks=[])
        panel.set_xlabel("word, by topic", fontsize=9)
        panel.set_ylabel("word, by topic", fontsize=9)
        panel.grid(visible=False)
        panel.set_title(f"{_MATRICES[name]}, {loss}, {_label(optimizer, rate)}", fontsize=9)
    return drawing


@figure(
    "attention",
    "Mean attention by class of word pairs. Dots are trainings, and bars are the published means. The dotted line is "
    "uniform attention.",
)
def _attention_figure(rows: Rows) -> Drawing:
    drawing, (trained, diagonal) = panels(2, width=4.8, height=3.3)
    mark: dict[str, Any] = {"color": "#9a6700", "ms": 12, "mew": 2}
    for panel, name, published, settings in (
        (trained, "with values", _TABLE_2_1, SETTINGS),
        (diagonal, "diagonal values", _TABLE_2_2, _DIAGONAL),
    ):
        for place, ((label, column), color) in enumerate(
            zip(_CLASSES.items(), (BAD, OURS, QUIET), strict=True)
        ):
            for number, (setting, printed) in enumerate(zip(settings, published.values(), strict=True)):
                values = attention(column, *setting, name)(rows)
                at = number + 0.2 * (place - 1)
                shown = None if number else label
                panel.plot([at] * len(values), values, "o", color=color, ms=4, label=shown)
                panel.plot(at, printed[place], "_", **mark)
        panel.axhline(0.01, color=QUIET, ls=":", lw=1)
        panel.set_xticks(range(len(settings)), list(published))
        panel.grid(axis="x", visible=False)
    trained.plot([], [], "_", label="published", **mark)
    trained.set(ylim=(0, None), ylabel="attention in 100 words", title="Trained values (Table 2.1)")
    trained.legend(ncols=2)
    diagonal.set(yscale="log", title="Fixed diagonal values (Table 2.2)")
    return drawing


@figure(
    "stages",
    "Norms of the matrices during training from almost zero (top), and their rotation from one recorded step to the "
    "next (bottom).",
)
def _stages_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, 2, width=3.7, height=2.7, sharex="col")
    cases = (
        ("one layer", "sgd", "One layer, SGD"),
        ("one layer", "adam", "One layer, Adam"),
        ("four layers", "adam", "Four layers of four heads, Adam"),
    )
    matrices = (("values", "$W_V$", BAD), ("keys", "$W_K$", OURS), ("queries", "$W_Q$", COLORS[2]))
    for sizes, turns, (name, optimizer, title) in zip(axes[:3], axes[3:], cases, strict=True):
        chosen = rows.where("stage", name=name, optimizer=optimizer)
        for matrix, label, color in matrices:
            for seed, part in chosen.groupby("seed"):
                part = part.sort_values("step")
                style: dict[str, Any] = {"color": color, "lw": 1, "alpha": 0.8}
                shown = label if seed == chosen.seed.iloc[0] else None
                sizes.plot(part.step, part[matrix], label=shown, **style)
                turns.plot(part.step.iloc[1:], part[f"{matrix}_turned"].iloc[1:], **style)
        sizes.set(title=title, ylim=(0, None))
        turns.set(xlabel="step", yscale="log", ylim=(1e-7, 1))
    axes[0].set_ylabel("norm")
    axes[3].set_ylabel("cosine distance per recorded step")
    axes[0].legend()
    return drawing


FIGURES = (_matrices_figure, _attention_figure, _stages_figure)


_PUBLISHED = _TABLE_2_1 | {f"{label}{_FIXED}": numbers for label, numbers in _TABLE_2_2.items()}


@result_table(
    "Attention by class of word pairs",
    "Tables 2.1 and 2.2",
    published={label: dict(zip(_CLASSES, numbers, strict=True)) for label, numbers in _PUBLISHED.items()},
    row_heading="optimizer and learning rate",
    note="mean over pairs of positions, multiplied by the document length divided by 100; cross-entropy unless stated; "
    "this project chose the highest rate of SGD",
)
def _attention_table(_: Rows) -> Cells:
    cases = [(setting, "with values", "CE", "") for setting in SETTINGS]
    cases.append((("sgd", SGD_RATES["attention"]["CE"]), "with values", "CE", ""))
    cases.append((("adam", FIGURE_RATE), "with values", "squared", ", squared loss"))
    cases += [(setting, "diagonal values", "CE", _FIXED) for setting in _DIAGONAL]
    return {
        _label(*setting) + suffix: {
            head: attention(column, *setting, name, loss=loss) for head, column in _CLASSES.items()
        }
        for setting, name, loss, suffix in cases
    }


TABLES = (_attention_table,)
