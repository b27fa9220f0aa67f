"""Exact measurements of samplers with a verifier: model calls, verifier calls and output distributions."""

from collections.abc import Iterable
from itertools import product
from typing import Any

from trialogue.data import Dyck, Table
from trialogue.data.puzzles import hidden_string
from trialogue.data.puzzles.hidden_string import ConstrainedTask, HiddenString
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.samplers import TokenwiseRejection, truncated
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.theory import query_complexity as theory

DYCK, HIDDEN = "Dyck strings", "hidden string"
BRACKETS = 4
"""Number of tokens of Dyck strings with two types of brackets."""


def measure_optimal_search(lengths: Iterable[int]) -> MeasuredRows:
    """Compute the expected model calls of an optimal search for a hidden string (Theorem 3.1.1).

    The hidden string is the only valid string with positive probability under the model.

    Args:
        lengths: String lengths.

    Yields:
        One row per length. `inferred` and `queried` are computed by dynamic programming. In `inferred`, the last
        remaining candidate needs no model call. `closed_form` is our formula, and `printed` is the published one.
    """
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


def measure_fixed_order_search(lengths: Iterable[int]) -> MeasuredRows:
    """Compute the model calls of a search that tries all candidates in a fixed order.

    The search is for the hidden string, the only valid string with positive probability under the model.

    Args:
        lengths: String lengths.

    Yields:
        Two rows per length. `inferred` states whether the last remaining candidate is inferred without a model call.
        `most` and `mean` are the maximum and the mean number of model calls over all hidden strings.
    """
    for length in lengths:
        order = list(product((0, 1), repeat=length - 1))
        for inferred in (True, False):
            queries = [
                theory.search_hidden_string(oracle, length, order=order, infer_last=inferred).queries
                for oracle in map(HiddenString, order)
            ]
            yield {
                "kind": "order",
                "length": length,
                "inferred": inferred,
                "most": max(queries),
                "mean": sum(queries) / len(queries),
                "printed": float(len(order)),
            }


def measure_hidden_string(lengths: Iterable[int], caps: Iterable[int]) -> MeasuredRows:
    """Compute the costs of sampling a hidden string with a perfect verifier.

    The hidden string is the only valid string with positive probability under the model. Rejection samples
    complete strings until one is valid. Tokenwise rejection samples each token until the verifier accepts the
    prefix.

    Args:
        lengths: String lengths.
        caps: Maximum numbers of rejections at one position, after which tokenwise rejection fails.

    Yields:
        One row of the kind "hidden" per length, with the model calls of rejection and of an optimal search.
        One row of the kind "capped" per length and maximum, with the success probability and the model calls
        of tokenwise rejection.
    """
    caps = tuple(caps)
    for length in lengths:
        # The samplers do not use the hidden string, so that their costs are the same for every hidden string.
        oracle, verifier, _ = hidden_string.hidden_string_task([place % 2 for place in range(length - 1)])
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


def measure_zero_string(lengths: Iterable[int]) -> MeasuredRows:
    """Compute the model calls that two samplers need to generate the only valid string, 00...0.

    The model generates uniformly random bits. The numbers are compared with those in Proposition 3.1.1.

    Args:
        lengths: String lengths.

    Yields:
        One row per length.

        - `rejection`: expected number of calls if complete strings are sampled until one is valid.
        - `tokenwise`: expected number of calls if each token is sampled until the verifier accepts it.
        - `rejection_printed`, `tokenwise_printed`: published numbers.
    """
    for length in lengths:
        oracle, verifier, _ = hidden_string.all_zeros_task(length)
        yield {
            "kind": "zeros",
            "length": length,
            "rejection": theory.rejection_cost(oracle, verifier),
            "rejection_printed": length * 2.0**length,
            "tokenwise": theory.tokenwise_cost(oracle, verifier),
            "tokenwise_printed": 2.0 * length,
        }


def measure_tokenwise_distribution(lengths: Iterable[int]) -> MeasuredRows:
    """Compute the output distribution of tokenwise rejection if every string except 1...1 is valid.

    Tokenwise rejection samples each token from uniformly random bits until the verifier accepts the prefix. This is the
    example of Proposition 3.1.2. Probabilities are exact fractions.

    Args:
        lengths: String lengths D.

    Yields:
        One row per length D.

        - `variation`: total variation distance from uniformly distributed valid strings, computed from a formula.
        - `walked`: the same distance, computed from the implemented sampler.
        - `last`: probability of the string 1...10, in units of 2^-D.
        - `least`, `most`: smallest and largest probability of the other strings, in the same units.
        - `least_of_a`: smallest positive probability of the other strings, in the same units.
    """
    for length in lengths:
        last = (*(1,) * (length - 1), 0)

        def is_allowed(prefix: Prefix, length: int = length) -> bool:
            return len(prefix) < length or 0 in prefix

        def fair(_: Prefix) -> tuple[int, int]:
            return (1, 1)

        distribution = theory.tokenwise_distribution(fair, is_allowed, length)
        variation = theory.rational_variation(
            distribution, theory.restricted_distribution(fair, is_allowed, length)
        )
        strings = product((0, 1), repeat=length)
        others = [distribution.get(string, 0) * 2**length for string in strings if string != last]
        task = hidden_string.some_zero_task(length)
        sampled = exact_distribution(TokenwiseRejection(), task.oracle, task.verifier).probabilities
        yield {
            "kind": "law",
            "length": length,
            "variation": float(variation),
            "off": float(abs(variation * 2**length * (2**length - 1) - (2**length - 2))),
            "walked": total_variation(sampled, target_distribution(task.oracle, task.verifier)),
            "last": float(distribution[last] * 2**length),
            "least": float(min(others)),
            "least_of_a": float(min(mass for mass in others if mass)) if length > 1 else 1.0,
            "most": float(max(others)),
        }


def measure_dyck_strings(lengths: Iterable[int]) -> MeasuredRows:
    """Compute the model calls for sampling Dyck strings (balanced brackets) from a uniform model.

    Args:
        lengths: String lengths.

    Yields:
        One row per length. `rejection` is the number for sampling complete strings until one is valid, and `tokenwise`
        is the number for sampling each token until the verifier accepts the prefix.
    """
    for length in lengths:
        task = make_dyck_task(length)
        yield {
            "kind": "dyck",
            "length": length,
            "rejection": theory.rejection_cost(task.oracle, task.verifier),
            "tokenwise": theory.tokenwise_cost(task.oracle, task.verifier),
        }


def make_dyck_task(length: int) -> ConstrainedTask:
    """Return the task of generating Dyck strings with two types of brackets.

    The model is uniform.

    Args:
        length: String length.
    """
    oracle = Table(lambda _: (1 / BRACKETS,) * BRACKETS, BRACKETS, max_length=length, memory=0)
    return ConstrainedTask(oracle, Dyck(length, (0.5, 0.5)), length)


def measure_verifier_calls(dyck_lengths: Iterable[int], hidden_lengths: Iterable[int]) -> MeasuredRows:
    """Count the verifier calls for generating a string by trying every token at every position.

    Args:
        dyck_lengths: Lengths of Dyck strings (balanced brackets).
        hidden_lengths: Lengths of hidden strings. All hidden strings of a length are enumerated, and each one belongs
            to a model that gives positive probability to no other valid string.

    Yields:
        One row per task and length. `calls` is the number of verifier calls, and `bound` is its upper bound. `solved`
        is the share of models that give positive probability to the generated string.
    """

    def row(task: str, length: int, calls: int, tokens: int, solved: float) -> dict[str, Any]:
        row = {"kind": "verifier", "task": task, "length": length}
        return {**row, "calls": calls, "bound": tokens * length, "solved": solved}

    for length in dyck_lengths:
        run = theory.generate_by_trying(make_dyck_task(length))
        yield row(DYCK, length, run.verifier_calls, BRACKETS, float(run.output is not None))
    for length in hidden_lengths:
        # The greedy oracle makes the first accepted token the most likely one. The hidden string is not used.
        greedy = truncated(hidden_string.fair_bits(length), temperature=0)
        run = theory.generate_by_trying(
            hidden_string.hidden_string_task((0,) * (length - 1))._replace(oracle=greedy)
        )
        assert run.output is not None
        hidden = [HiddenString(string) for string in product((0, 1), repeat=length - 1)]
        solved = sum(can_generate(oracle, run.output) for oracle in hidden) / len(hidden)
        yield row(HIDDEN, length, run.verifier_calls, 2, solved)


def can_generate(oracle: HiddenString, string: Prefix) -> bool:
    """Return whether a model gives positive probability to a string.

    Args:
        oracle: The model, which has a hidden string.
        string: The tokens.
    """
    return all(oracle.weights(string[:position])[token] > 0 for position, token in enumerate(string))
