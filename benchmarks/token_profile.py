"""Profile of one decoding step, with the modules of transformers and with packed weights in each format.

SmolLM2-135M-Instruct generates `TOKENS` tokens per row with a mask for a regular expression, under the profiler of
torch. The self time of each operator is assigned to the layers, the output embedding, the distribution, the sampling of
a token, the verifier, or the sampler with its batch. The remaining time of the forward pass is spent in Python and in
the dispatch of operators. The profiler measures wall time and overestimates the cost of dispatch. The last lines
therefore show the time per token with the profiler, and the CPU time without it, as the minimum over `--rounds`.

    trialogue models pull smollm2
    python benchmarks/token_profile.py [--rows 1] [--weights int4 auto] [--record]
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile, record_function

from contenders import NEW_TOKENS, ours
from record import Record
from trialogue.models.caching.position_cache import PositionLayer
from trialogue.models.caching.pretrained_contexts import CachedContext, PretrainedContext
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.randomness import Streams
from trialogue.samplers import MaskedDecoding
from trialogue.verifiers import GrammarVerifier
from trialogue.verifiers.languages.language_verifier import LanguageVerifier
from weights import FORMATS, loaded

PASS, HEAD, LAW, ATTENTION = "pass", "output embedding", "distribution, normalised", "attention and its cache"
DRAW, VERIFIER, WALK = "draw", "verifier: masks of the rule", "sampler and batch: bookkeeping"
PRODUCTS, OTHER = "products of the layers", "norms, activations, rotary embedding, sums"
DISPATCH = "dispatch and Python of the pass"
PARTS = (PRODUCTS, HEAD, ATTENTION, OTHER, DISPATCH, LAW, DRAW, VERIFIER, WALK)
WHERE = {
    (CachedContext, "features"): PASS,
    (PretrainedContext, "scores"): HEAD,
    (PretrainedContext, "log_probs_from_scores"): LAW,
    (PositionLayer, "update"): ATTENTION,
    (Streams, "choose"): DRAW,
    (LanguageVerifier, "children"): VERIFIER,
    (LanguageVerifier, "values"): VERIFIER,
}
_MULTIPLY = ("mm", "linear_pointwise", "_mkl_linear", "_mm_for_cpu")
_NO_WORK = (
    "linear",
    "matmul",
    "view",
    "reshape",
    "transpose",
    "t",
    "as_strided",
    "slice",
    "narrow",
    "select",
)
_NO_WORK += ("expand", "unsqueeze", "squeeze", "alias", "detach", "chunk", "split", "to", "empty", "resize_")


@contextmanager
def labelled() -> Iterator[None]:
    """Label the parts of a decoding step for the profiler."""

    def label_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def labelled_method(*arguments: Any, **settings: Any) -> Any:
            with record_function(name):
                return method(*arguments, **settings)

        return labelled_method

    with ExitStack() as patches:
        for (owner, method), name in WHERE.items():
            patches.enter_context(patch.object(owner, method, label_method(name, getattr(owner, method))))
        yield


def part_of(event: Any) -> str:
    """Return the part of the step to which the self time of an event belongs."""
    labels, inside = {*WHERE.values(), WALK}, event
    while inside is not None and inside.name not in labels:
        inside = inside.cpu_parent
    if inside is None or inside.name != PASS:
        return WALK if inside is None else str(inside.name)
    operator = event.name.rpartition("::")[2]
    if "scaled_dot_product" in operator:
        return ATTENTION
    if operator in _NO_WORK or event.name == PASS:
        return DISPATCH
    return PRODUCTS if operator.endswith(_MULTIPLY) else OTHER


def milliseconds(oracle: PretrainedOracle, rows: int, rounds: int) -> dict[str, float]:
    """Return the milliseconds of each part of a step, and of the whole step with and without the profiler."""
    text = oracle.tokenization
    run = ours(oracle, rows, MaskedDecoding(), lambda: GrammarVerifier.regex("[^eE]+", text))
    run()
    alone = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        alone.append((time.process_time() - began) / NEW_TOKENS * 1e3)
    found: dict[str, float] = defaultdict(float)
    with labelled(), profile(activities=[ProfilerActivity.CPU]) as seen, record_function(WALK):
        run()
    for event in seen.events():
        found[part_of(event)] += event.self_cpu_time_total / NEW_TOKENS / 1e3
    return {**{part: found[part] for part in PARTS}, "profiled": sum(found.values()), "by itself": min(alone)}


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="short name, folder or GGUF file")
    parser.add_argument(
        "--weights", nargs="+", choices=FORMATS, default=["as stored", "float32", "int8", "int4"]
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the rows that the documentation quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    console, record = Console(width=140), Record("token_profile")
    found: dict[int, dict[str, dict[str, float]]] = {rows: {} for rows in arguments.rows}
    for weights in arguments.weights:
        oracle = loaded(arguments.model, weights)
        oracle.eos = None
        for rows in arguments.rows:
            found[rows][weights] = milliseconds(oracle, rows, arguments.rounds)
    for rows, columns in found.items():
        table = Table("ms a step", *columns, title=f"{rows} rows, {NEW_TOKENS} tokens of each")
        for part in next(iter(columns.values())):
            cells = []
            for weights, values in columns.items():
                record.add(weights, values[part], what=part, rows=rows)
                share = "" if part not in PARTS else f" ({values[part] / values['profiled']:.0%})"
                cells.append(f"{values[part]:.2f}{share}")
            table.add_row(part, *cells)
        console.print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
