"""Exact measurements: optima, costs, laws as fractions, and calls of a verifier."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import torch

from trialogue.data import Dyck, Table
from trialogue.data.puzzles.hidden_string import (
    ConstrainedTask,
    HiddenString,
    all_zeros_task,
    fair_bits,
    hidden_string_task,
    some_zero_task,
)
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.samplers import TokenwiseRejection, truncated
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue_lab.theory import query_complexity as theory

Rows = Iterator[dict[str, Any]]

DYCK, HIDDEN = "Dyck strings", "hidden string"
BRACKETS = 4
"""Tokens of Dyck strings with two types of brackets."""


def optimum_rows(lengths: Iterable[int]) -> Rows:
    """Expected queries of the best searcher by dynamic programming, by its closed form, and what is printed."""
    for length in lengths:
        candidates = 2 ** (length - 1)
        yield {
            "kind": "optimum",
            "length": length,
            "queried": float(theory.hidden_string_values(candidates, infer_last=False)[-1]),
            "inferred": float(theory.hidden_string_values(candidates)[-1]),
            "closed_form": float(theory.hidden_string_optimum(length)),
            "printed": float(candidates),
        }


def order_rows(lengths: Iterable[int]) -> Rows:
    """Queries of the searcher that asks in one fixed order: the most and the mean over all hidden strings."""
    for length in lengths:
        order = list(product((0, 1), repeat=length - 1))
        for inferred in (True, False):
            queries = [
                theory.search_hidden_string(
                    HiddenString(hidden), length, order=order, infer_last=inferred
                ).queries
                for hidden in order
            ]
            yield {
                "kind": "order",
                "length": length,
                "inferred": inferred,
                "most": max(queries),
                "mean": sum(queries) / len(queries),
                "printed": float(len(order)),
            }


def hidden_rows(lengths: Iterable[int], caps: Iterable[int]) -> Rows:
    """What walks with a perfect verifier cost on a hidden string: per output, where FAIL means to begin again."""
    caps = tuple(caps)
    for length in lengths:
        # No walk knows the hidden string: on each of them they cost the same.
        oracle, verifier, _ = hidden_string_task([place % 2 for place in range(length - 1)])
        yield {
            "kind": "hidden",
            "length": length,
            "rejection": theory.rejection_cost(oracle, verifier),
            "success": theory.tokenwise_success(oracle, verifier),
            "optimum": float(theory.hidden_string_optimum(length)),
        }
        for cap in caps:
            success = theory.tokenwise_success(oracle, verifier, max_rejections=cap)
            queries = theory.tokenwise_cost(oracle, verifier, max_rejections=cap)
            yield {
                "kind": "capped",
                "length": length,
                "cap": cap,
                "success": success,
                "queries": queries,
                "per_output": queries / success,
            }


def zero_rows(lengths: Iterable[int]) -> Rows:
    """Proposition 3.1.1: costs of the string of zeros, and what is printed."""
    for length in lengths:
        oracle, verifier, _ = all_zeros_task(length)
        yield {
            "kind": "zeros",
            "length": length,
            "rejection": theory.rejection_cost(oracle, verifier),
            "rejection_printed": length * 2.0**length,
            "tokenwise": theory.tokenwise_cost(oracle, verifier),
            "tokenwise_printed": 2.0 * length,
        }


def law_rows(lengths: Iterable[int]) -> Rows:
    """Proposition 3.1.2: the law of tokenwise rejection as fractions, and that of the walk.

    Masses are in units of 2^-D, of all strings but that of ones with a zero behind, which is called last.
    """
    for length in lengths:
        last = (*(1,) * (length - 1), 0)

        def rule(prefix: Prefix, length: int = length) -> bool:
            return len(prefix) < length or 0 in prefix

        def fair(_: Prefix) -> tuple[int, int]:
            return (1, 1)

        law = theory.tokenwise_law(fair, rule, length)
        variation = theory.rational_variation(law, theory.restricted_law(fair, rule, length))
        strings = product((0, 1), repeat=length)
        others = [law.get(string, 0) * 2**length for string in strings if string != last]
        task = some_zero_task(length)
        walked = exact_distribution(TokenwiseRejection(), task.oracle, task.verifier).probabilities
        yield {
            "kind": "law",
            "length": length,
            "variation": float(variation),
            "off": float(abs(variation * 2**length * (2**length - 1) - (2**length - 2))),
            "walked": total_variation(walked, target_distribution(task.oracle, task.verifier)),
            "last": float(law[last] * 2**length),
            "least": float(min(others)),
            "least_of_a": float(min(mass for mass in others if mass)) if length > 1 else 1.0,
            "most": float(max(others)),
        }


def dyck_rows(lengths: Iterable[int]) -> Rows:
    """Costs of Dyck strings whose brackets a uniform oracle draws."""
    for length in lengths:
        task = dyck_task(length)
        yield {
            "kind": "dyck",
            "length": length,
            "rejection": theory.rejection_cost(task.oracle, task.verifier),
            "tokenwise": theory.tokenwise_cost(task.oracle, task.verifier),
        }


def dyck_task(length: int) -> ConstrainedTask:
    """Dyck strings of `length`, brackets of two types drawn uniformly."""
    oracle = Table(lambda _: (1 / BRACKETS,) * BRACKETS, BRACKETS, max_length=length, memory=0)
    return ConstrainedTask(oracle, Dyck(length, (0.5, 0.5)), length)


def verifier_rows(dyck_lengths: Iterable[int], hidden_lengths: Iterable[int]) -> Rows:
    """What is made by asking a perfect verifier about every token: its calls, and whether the oracle can give it.

    Of hidden strings all are tried, and the first token that the verifier accepts is taken.
    """

    def row(task: str, length: int, calls: int, tokens: int, solved: float) -> dict[str, Any]:
        place = {"kind": "verifier", "task": task, "length": length}
        return {**place, "calls": calls, "bound": tokens * length, "solved": solved}

    for length in dyck_lengths:
        run = theory.generated(dyck_task(length))
        yield row(DYCK, length, run.verifier_calls, BRACKETS, float(run.output is not None))
    for length in hidden_lengths:
        # The oracle is not asked: of tokens that are equally probable the first that is accepted is likeliest.
        greedy = truncated(fair_bits(length), temperature=0)
        run = theory.generated(hidden_string_task((0,) * (length - 1))._replace(oracle=greedy))
        assert run.output is not None
        hidden = [HiddenString(string) for string in product((0, 1), repeat=length - 1)]
        solved = sum(possible(oracle, run.output) for oracle in hidden) / len(hidden)
        yield row(HIDDEN, length, run.verifier_calls, 2, solved)


def possible(oracle: HiddenString, string: Prefix) -> bool:
    """Whether the oracle gives the `string` with positive probability."""
    tokens = torch.tensor([string])
    return all(
        float(oracle.next_log_probs(tokens, torch.tensor([place]))[0, token]) > -torch.inf
        for place, token in enumerate(string)
    )
