"""Figure of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import Rows, figure, panels


@figure(
    "words",
    "Cosine similarity of the embeddings of nine words in MiniLM-L6. Words are sorted by topic.",
)
def _words_figure(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=5.0, height=4.2)
    table = rows["pair"]
    words = list(dict.fromkeys([*table["first"], *table.second]))
    cosines = [[1.0] * len(words) for _ in words]
    for first, second, cosine in zip(table["first"], table.second, table.cosine, strict=True):
        one, other = words.index(first), words.index(second)
        cosines[one][other] = cosines[other][one] = float(cosine)
    shown = axes.imshow(cosines, cmap="viridis", vmin=0, vmax=1)
    axes.set_xticks(range(len(words)), words, rotation=90)
    axes.set_yticks(range(len(words)), words)
    axes.grid(visible=False)
    drawing.colorbar(shown, ax=axes, label="cosine similarity")
    return drawing


FIGURES = (_words_figure,)
