"""Speed of `memorize` and of its linear solve, compared with least squares of NumPy on the same matrix.

The targets are random distributions after all pairs of N tokens, with d = N - 1, heads of width d, and 5 % more
features than contexts. There are T = 400 contexts for N = 20, and T = 2,500 for N = 50. The solve consists of least
squares by singular value decomposition and a check that the matrix of the skip connection is invertible. NumPy also
uses a singular value decomposition, which determines the rank. The contenders alternate. The table shows the CPU
seconds of the fastest round, summed over threads.

    python benchmarks/memorization.py
"""

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from record import Record
from trialogue.models.networks.attention_only import AttentionOnlyConfig
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.theory.memorization import generic_network, memorize, nearest_encoder
from trialogue_lab.theory.memorization.folding import pad_states, solved

VOCABULARIES = {20: 10, 50: 1}
"""Number of rounds by vocabulary size N."""
THREADS = (1, 2)
SPARE = 0.05


def contenders(vocab_size: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """Return the number of contexts and the contenders."""
    width, contexts = vocab_size - 1, enumerate_sequences(vocab_size, 2)
    total = len(contexts)
    drawn = torch.randn(total, vocab_size, generator=generator(0, "laws"), dtype=torch.float64)
    distributions = (2 * drawn).log_softmax(1)
    heads = math.ceil(((1 + SPARE) * total - width) / width)
    shape = AttentionOnlyConfig(vocab_size=vocab_size, context=2, width=width, heads=heads, head_width=width)
    features = generic_network(shape).features(contexts)
    states = pad_states(nearest_encoder(distributions, width).orthogonal(), features, width)
    matrix, right = features.numpy(), states.numpy()
    return total, {
        "solve of memorize": lambda: solved(matrix, right),
        "numpy.linalg.lstsq": lambda: np.linalg.lstsq(matrix, right, rcond=None),
        "all of memorize": lambda: memorize(distributions, contexts, width, heads, width),
    }


def measured(acts: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run the contenders in alternation and return the CPU seconds of the fastest round of each."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, act in acts.items():
            began = time.process_time()
            act()
            found[name] = min(found.get(name, math.inf), time.process_time() - began)
    return found


def main() -> None:
    record, out = Record("memorization"), Console()
    table = Table(title="Seconds of CPU")
    for head in ("T", "threads", "what", "s"):
        table.add_column(head, justify="left" if head == "what" else "right")
    for vocab_size, rounds in VOCABULARIES.items():
        for threads in THREADS:
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                total, acts = contenders(vocab_size)
                for name, seconds in measured(acts, rounds).items():
                    record.add(name, round(seconds, 3), what="CPU, s", contexts=total, threads=threads)
                    table.add_row(f"{total:,}", str(threads), name, f"{seconds:.3f}")
    out.print(table)
    record.write()


if __name__ == "__main__":
    main()
