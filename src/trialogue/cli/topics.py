"""The command `trialogue topics`."""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.cli.parsing.commands import Commands, add_model_options
from trialogue.validation import Count, check, integer_range

if TYPE_CHECKING:
    from trialogue.inspection.topic_structure.measure import TopicMeasurement
    from trialogue.inspection.topic_structure.ratios import TopicComparison
    from trialogue.intervals import Interval

_FIGURE = "topics.svg"
_ONE, _SOME, _RANDOM = "one topic per word", "one or more topics per word", "random weights"
_SHOWN = 10


def topics(arguments: argparse.Namespace) -> None:
    """Measure whether a model gives words of one topic similar embeddings and more attention."""
    import torch

    from trialogue.data.corpus.documents import split_documents, split_passages
    from trialogue.data.corpus.texts import open_local_text
    from trialogue.display.figures import render_figure
    from trialogue.extras import from_extra
    from trialogue.inspection.topic_structure.measure import MOST, TopicSettings, measure_topics
    from trialogue.inspection.topic_structure.picture import draw_topics
    from trialogue.models.hub.attention_weights import load_attention_model
    from trialogue.storage import atomic_write, make_folder, user_folder

    from_extra("matplotlib", "plot")  # Check for the package before the computation.
    torch.set_num_threads(check("threads", arguments.threads, Count))
    check("resamples", arguments.resamples, integer_range(2))
    check("words", arguments.words, integer_range(2, MOST))
    settings = TopicSettings(
        topics=arguments.topics,
        passes=arguments.passes,
        read=arguments.read,
        length=arguments.length,
        seed=arguments.seed,
    )
    documents = split_documents(open_local_text(arguments.text))
    corpus = split_passages(documents, arguments.passage)
    folder = make_folder(user_folder("topics") if arguments.out is None else arguments.out)
    model = load_attention_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
    found = measure_topics(model, corpus, settings, folder=folder, control=arguments.control, report=_report)
    _report("comparing pairs of words")
    drawn: dict[str, Any] = {"resamples": arguments.resamples, "seed": arguments.seed}
    compared = {
        _ONE: found[0].compare(arguments.words, single=True, **drawn),
        _SOME: found[0].compare(arguments.words, single=False, **drawn),
    }
    if arguments.control:
        compared[_RANDOM] = found[1].compare(arguments.words, single=True, **drawn)
    figure = folder / _FIGURE
    atomic_write(
        figure, render_figure(lambda: draw_topics(found[0], compared, arguments.words), "svg", "topics")
    )
    if arguments.json:
        sizes = {"documents": len(documents), "passages": len(corpus)}
        print(json.dumps(sizes | _record(found[0], compared, arguments.words), allow_nan=False))
    else:
        print(f"{len(documents)} documents in {len(corpus)} passages of up to {arguments.passage} words")
        _print(found[0], compared, arguments.words)
        print(f"figure: {figure}")


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(
    measurement: "TopicMeasurement", compared: "Mapping[str, Sequence[TopicComparison]]", words: int
) -> None:
    from trialogue.display.numbers import format_number
    from trialogue.display.terminal import console, grid
    from trialogue.inspection.topic_structure.ratios import CLASSES

    out = console()
    for name, found in compared.items():
        heads = ("mean over pairs", *CLASSES, "same / different", "95 % interval")
        lines = []
        for one in found:
            means = [format_number(one.means[kind].estimate) for kind in CLASSES]
            lines.append((one.measure, *means, format_number(one.ratio.estimate), _ends(one.ratio)))
        out.print(grid(f"{measurement.model}, {words} words per topic: {name}", heads, lines))
    met = compared[_ONE][0].pairs
    out.print(f"Pairs: {', '.join(f'{count:,} {kind}' for kind, count in met.items())} ({_ONE}).")
    known = measurement.words
    out.print(
        f"Skipped {known.several / known.occurrences:.1%} of the word occurrences ({known.several_kinds:,} words), "
        f"which have more than one token; {len(known.names):,} words with one token remain."
    )
    shown = measurement.top_words(8)[:_SHOWN]
    out.print(f"The {len(shown)} topics with the most words, of {len(measurement.distributions)}:")
    for row in shown:
        out.print(f"  {', '.join(row)}")


def _ends(found: "Interval") -> str:
    from trialogue.display.numbers import ABSENT, format_number

    return ABSENT if math.isnan(found.low) else f"{format_number(found.low)} to {format_number(found.high)}"


def _record(
    measurement: "TopicMeasurement", compared: "Mapping[str, Sequence[TopicComparison]]", words: int
) -> dict[str, Any]:
    known = measurement.words
    return {
        "model": measurement.model,
        "words": len(known.names),
        "occurrences": known.occurrences,
        "occurrences_of_several_tokens": known.several,
        "words_of_several_tokens": known.several_kinds,
        "words_per_topic": words,
        "comparisons": [
            {
                "of": name,
                "measure": one.measure,
                "pairs": one.pairs,
                "means": {kind: _interval(mean) for kind, mean in one.means.items()},
                "ratio": _interval(one.ratio),
                "difference": _interval(one.difference),
            }
            for name, found in compared.items()
            for one in found
        ],
        "topics": measurement.top_words(words),
    }


def _interval(found: "Interval") -> dict[str, float | None]:
    """Return the interval as JSON values, with None for numbers that are not finite."""
    from trialogue.display.numbers import finite_or_none

    return {name: finite_or_none(value) for name, value in found._asdict().items()}


def add(commands: Commands) -> None:
    """Add the command `trialogue topics` to a parser.

    Args:
        commands: Commands of the parser.
    """
    parser = commands.add("topics", topics, group="Inspect")
    parser.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help="Encoder or decoder: a Hugging Face id, a folder, a short name or a GGUF file.",
    )
    parser.add_argument(
        "--text",
        metavar="FILE",
        type=Path,
        required=True,
        help="UTF-8 file or folder of .txt files. Lines such as <|endoftext|> separate documents.",
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="Write results to this folder (default: the user's cache)."
    )
    for name, default, text in (
        ("topics", 100, "Number of topics"),
        ("words", 30, "Compare this many of the most probable words per topic"),
        ("read", 200, "Measure attention in this many passages"),
        ("length", 128, "Truncate these passages to this many tokens"),
        ("passage", 200, "Split documents into passages of this many words"),
        ("passes", 10, "Passes of the topic model over the text"),
        ("resamples", 200, "Bootstrap resamples of words and documents"),
        ("seed", 0, "Seed of the random numbers"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default: {default})."
        )
    parser.add_argument(
        "--no-control",
        dest="control",
        action="store_false",
        help="Skip the control, the same architecture with random weights.",
    )
    parser.add_argument("--json", action="store_true", help="Print all numbers as JSON instead of tables.")
    add_model_options(parser)
