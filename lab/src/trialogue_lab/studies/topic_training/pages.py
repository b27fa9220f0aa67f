"""Figures and tables of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, NoRows, ResultTable, Rows
from trialogue_lab.studies.topic_training.config import DIAGONAL_RATES, FIGURE_RATE, RATES, SGD_RATES
from trialogue_lab.studies.topic_training.statistics import attention, contrast, entries, gap, progress

_CLASSES = {"same word": "same_word", "same topic": "same_topic", "other topics": "other"}
_TABLE_1 = {
    "Adam .003": (0.00759, 0.0108, 0.00689),
    "Adam .01": (0.00811, 0.010, 0.00707),
    "Adam .03": (0.00453, 0.0116, 0.00665),
    "SGD .01": (0.0105, 0.0106, 0.00673),
    "SGD .03": (0.0140, 0.0103, 0.00641),
}
_TABLE_2 = {"Adam .003": (0.0916, 0.00185, 0.00256), "Adam .01": (0.0918, 0.00182, 0.00256)}
_GROUPS = (("all", "W^E^T W^E, all trained"), ("with L2", "W^V with L2"), ("without L2", "W^V without L2"))
_NAMES = {"all": "$W_E^T W_E$", "with L2": "$W_V$, L2", "without L2": "$W_V$"}


def _draw_matrices(rows: Rows) -> Drawing:
    drawing, axes = panels(4, 3, width=2.7, height=2.1)
    table = rows["matrix"]
    words = [column for column in table if str(column).startswith("word_")]
    places = iter(axes)
    for name, _ in _GROUPS:
        for loss in ("CE", "squared"):
            for optimizer, rate in (("adam", FIGURE_RATE), ("sgd", _sgd_rate(name, loss))):
                panel = next(places)
                trained = table[(table.name == name) & (table.loss == loss)]
                chosen = trained[(trained.optimizer == optimizer) & (trained.rate == rate)]
                entries_of = chosen.sort_values("row")[words].to_numpy(dtype=float)
                # Of its own scale: losses and optimisers have come differently far.
                most = float(np.quantile(np.abs(entries_of), 0.99)) or 1.0
                shown = panel.imshow(
                    entries_of, cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest"
                )
                drawing.colorbar(shown, ax=panel, shrink=0.8).ax.tick_params(labelsize=6)
                panel.set(xticks=[], yticks=[])
                panel.set_xlabel("word, by topic", fontsize=7)
                panel.set_ylabel("word, by topic", fontsize=7)
                panel.grid(visible=False)
                panel.set_title(f"{_NAMES[name]}, {loss}, {_label(optimizer, rate)}", fontsize=8)
    return drawing


def _draw_stages(rows: Rows) -> Drawing:
    drawing, axes = panels(3, 2, width=3.7, height=2.7, sharex="col")
    table = rows["stage"]
    cases = (
        ("one layer", "sgd", "One layer, SGD"),
        ("one layer", "adam", "One layer, Adam"),
        ("four layers", "adam", "Four layers of four heads, Adam"),
    )
    for column, (name, optimizer, title) in enumerate(cases):
        sizes, turns = axes[column], axes[column + 3]
        chosen = table[(table.name == name) & (table.optimizer == optimizer)]
        for matrix, label, color in (
            ("values", "$W_V$", BAD),
            ("keys", "$W_K$", OURS),
            ("queries", "$W_Q$", COLORS[2]),
        ):
            for seed, part in chosen.groupby("seed"):
                part = part.sort_values("step")
                shown = label if seed == chosen.seed.iloc[0] else None
                sizes.plot(part.step, part[matrix], color=color, lw=1, alpha=0.8, label=shown)
                turns.plot(
                    part.step.iloc[1:], part[f"{matrix}_turned"].iloc[1:], color=color, lw=1, alpha=0.8
                )
        sizes.set_title(title)
        sizes.set(ylim=(0, None))
        turns.set(xlabel="step", yscale="log", ylim=(1e-7, 1))
    axes[0].set_ylabel("norm")
    axes[3].set_ylabel("cosine distance from the point before")
    axes[0].legend()
    return drawing


def _draw_attention(rows: Rows) -> Drawing:
    drawing, (trained, diagonal) = panels(2, width=4.8, height=3.3)
    settings = [(optimizer, rate) for optimizer, rates in RATES.items() for rate in rates]
    for panel, name, published, pairs in (
        (trained, "with values", _TABLE_1, settings),
        (diagonal, "diagonal values", _TABLE_2, [("adam", rate) for rate in DIAGONAL_RATES]),
    ):
        for place, ((_, column), color) in enumerate(zip(_CLASSES.items(), (BAD, OURS, QUIET), strict=True)):
            for number, (optimizer, rate) in enumerate(pairs):
                values = attention(column, optimizer, rate, name)(rows)
                at = number + 0.2 * (place - 1)
                label = list(_CLASSES)[place] if number == 0 else None
                panel.plot([at] * len(values), values, "o", color=color, ms=4, label=label)
                panel.plot(at, list(published.values())[number][place], "_", color="#9a6700", ms=12, mew=2)
        panel.axhline(0.01, color=QUIET, ls=":", lw=1)
        panel.set_xticks(range(len(pairs)), list(published))
        panel.grid(axis="x", visible=False)
    trained.plot([], [], "_", color="#9a6700", ms=12, mew=2, label="published")
    trained.set(ylim=(0, None), ylabel="attention in 100 words")
    trained.set_title("Values trained too (Table 2.1)")
    trained.legend(fontsize=7, ncols=2)
    diagonal.set(yscale="log")
    diagonal.set_title("Diagonal values held (Table 2.2)")
    return drawing


def _attention_cells(name: str, settings: list[tuple[str, float]], shift: int = 0, loss: str = "CE") -> Cells:
    return {
        _label(optimizer, rate): {
            head: attention(column, optimizer, rate, name, shift, loss) for head, column in _CLASSES.items()
        }
        for optimizer, rate in settings
    }


def _label(optimizer: str, rate: float) -> str:
    return f"{'Adam' if optimizer == 'adam' else 'SGD'} {f'{rate:g}'.lstrip('0')}"


def _matrices(rows: Rows) -> Cells:
    if "training" not in rows:
        raise NoRows("no trainings")
    return {
        f"{title}, {loss}, {_label(optimizer, rate)}": {
            "diagonal": entries(name, "diagonal", loss, optimizer, rate),
            "same topic": entries(name, "block", loss, optimizer, rate),
            "other topics": entries(name, "other", loss, optimizer, rate),
            "contrast": contrast(name, loss, optimizer, rate),
            "test loss": entries(name, "test", loss, optimizer, rate),
            "progress": progress(name, loss, optimizer, rate),
        }
        for name, title in _GROUPS
        for loss in ("CE", "squared")
        for optimizer, rate in (
            ("adam", FIGURE_RATE),
            ("sgd", FIGURE_RATE),
            ("sgd", _sgd_rate(name, loss)),
        )
    }


def _sgd_rate(name: str, loss: str) -> float:
    return SGD_RATES["embeddings" if name == "all" else "values"][loss]


_SETTINGS = [(optimizer, rate) for optimizer, rates in RATES.items() for rate in rates]


def _table_1(rows: Rows) -> Cells:
    del rows
    squared = _attention_cells("with values", [("adam", FIGURE_RATE)], loss="squared")
    return {
        **_attention_cells("with values", _SETTINGS),
        **_attention_cells("with values", [("sgd", SGD_RATES["attention"]["CE"])]),
        **{f"{label}, squared loss": cells for label, cells in squared.items()},
    }


TABLES = (
    ResultTable(
        title="Trained matrices",
        source="Figures 2.1, 2.2 and 2.5",
        cells=_matrices,
        rows_are="training, its rate",
        note="means over entries among words, over trainings ± one standard deviation; contrast: same topic less other "
        "topics, over the deviation of entries of other topics (none where trainings have hardly moved); loss: in "
        "nats, or summed squares; progress: how far it is below that of a constant, over how far Adam's at .01 is. "
        "Rates of SGD above .01 are ours",
    ),
    ResultTable(
        title="Attention, values trained too",
        source="Table 2.1",
        cells=_table_1,
        published={label: dict(zip(_CLASSES, numbers, strict=True)) for label, numbers in _TABLE_1.items()},
        rows_are="optimiser and rate",
        note="mean over pairs of positions, times the length over 100; cross-entropy but for the last line; a rate of "
        "ours in the line before",
    ),
    ResultTable(
        title="The same with topics shifted by four words",
        source="Table 2.1, the authors' analysis",
        cells=_attention_cells("with values", _SETTINGS, shift=4),
        published={label: dict(zip(_CLASSES, numbers, strict=True)) for label, numbers in _TABLE_1.items()},
        rows_are="optimiser and rate",
    ),
    ResultTable(
        title="Attention, diagonal values held",
        source="Table 2.2",
        cells=_attention_cells("diagonal values", [("adam", rate) for rate in DIAGONAL_RATES]),
        published={label: dict(zip(_CLASSES, numbers, strict=True)) for label, numbers in _TABLE_2.items()},
        rows_are="optimiser and rate",
    ),
    ResultTable(
        title="What is lost where a part is trained alone",
        source="Text after Theorems 2.1.1 and 2.1.2",
        cells={
            f"{name}, {loss}": {"relative excess of the test loss": gap(name, loss)}
            for name in ("embedding alone", "without L2")
            for loss in ("CE", "squared")
        },
        rows_are="trained",
        note="without L2: values alone, under uniform attention; all by Adam at .01",
    ),
)

FIGURES = (
    Figure(
        name="matrices",
        caption="Trained matrices among the hundred words of ten topics, first seed; each on a scale of its own, red "
        "above zero. Same-topic blocks appear wherever training has come far enough.",
        draw=_draw_matrices,
    ),
    Figure(
        name="attention",
        caption="Attention by class of pairs; dots are trainings, bars the published means. Dotted: uniform.",
        draw=_draw_attention,
    ),
    Figure(
        name="stages",
        caption="Norms of the matrices while they are trained from almost zero, and how far they turn between points.",
        draw=_draw_stages,
    ),
)
