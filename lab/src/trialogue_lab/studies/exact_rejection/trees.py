"""Exact output distributions of samplers on random trees, for samples that are generated one after another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Choose, numpy_generator
from trialogue.samplers import AdaptiveRejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.rejection_table import RejectionTable
from trialogue.testing.trees import Prefix, RandomTree, viable
from trialogue.verifiers import FunctionVerifier
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.exact_rejection.grammar_aligned import GrammarAligned

Table = RejectionTable | None
_RARE_OUTPUTS = 4


class TreeMaskVerifier(FunctionVerifier):
    """Verifier that allows the next tokens that exist in a random tree, as a mask over the vocabulary."""

    def __init__(self, allows: Callable[[Prefix], bool]) -> None:
        super().__init__(allows)
        self._allows = allows

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return, for each possible next token, whether the extended prefix is allowed.

        Args:
            decoding: The sequences being generated.
            rows: Indices (n,) of the selected sequences.

        Returns:
            Values (n, vocab) float64, 1 if allowed and 0 otherwise.
        """
        prefixes = [
            tuple(decoding.tokens[row, : int(decoding.lengths[row])].tolist()) for row in rows.tolist()
        ]
        verdicts = [
            [self._allows((*prefix, token)) for token in range(decoding.vocab_size)] for prefix in prefixes
        ]
        return torch.tensor(verdicts, dtype=torch.float64)


@dataclass(frozen=True)
class RareTree(RandomTree):
    """Random tree of token sequences on which a constraint allows only four random outputs."""

    @cache  # noqa: B019 (there are only a few small trees)
    def outputs(self) -> tuple[Prefix, ...]:
        """Return the four allowed outputs."""
        leaves = sorted(self.distribution())
        chosen = numpy_generator(self.seed, "allowed outputs").choice(
            len(leaves), _RARE_OUTPUTS, replace=False
        )
        return tuple(leaves[index] for index in chosen)

    @cache  # noqa: B019
    def allows(self, prefix: Prefix) -> bool:
        """Return whether a prefix can be continued to an allowed output."""
        return any(output[: len(prefix)] == prefix for output in self.outputs())


@dataclass(frozen=True)
class TableRecorder:
    """Mixin that records the tables of rejected prefixes or success rates that a sampler learns.

    Args:
        start: Table from which every sample starts.
        successive: Tables after each of several successive samples.
        left: Tables at the end of single samples.
        attempts: Pairs of tables, before and after each rejected attempt.
    """

    start: Table = None
    successive: list[Table] = field(default_factory=list, compare=False)
    left: list[Table] = field(default_factory=list, compare=False)
    attempts: list[tuple[Table, Table]] = field(default_factory=list, compare=False)

    def init(self, decoding: Decoding) -> Any:
        """Return initial states with the table `start`."""
        state: Any = super().init(decoding)  # type: ignore[misc]
        return state._replace(table=ObjectColumn([self.start] * len(decoding.lengths)))

    def merged(self, start: Any, ends: Any) -> Any:
        """Record the table from which the next sample starts."""
        state: Any = super().merged(start, ends)  # type: ignore[misc]
        self.successive.append(state.table.items[0])
        return state

    def step(
        self, decoding: Decoding, state: Any, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, Any]:
        """Record the tables of rows that finish a sample or reject an attempt."""
        moves, after = super().step(decoding, state, verifier, choose)  # type: ignore[misc]
        for row, (before, now) in enumerate(zip(state.table.items, after.table.items, strict=True)):
            if moves.done[row]:
                self.left.append(now)
            elif now is not before:
                self.attempts.append((before, now))
        return moves, after


@dataclass(frozen=True)
class RecordingRejection(TableRecorder, AdaptiveRejection):
    """`AdaptiveRejection` that records its tables of rejected prefixes.

    Successive samples share one table.
    """

    share: int | None = 1


@dataclass(frozen=True)
class RecordingGrammarAligned(TableRecorder, GrammarAligned):
    """`GrammarAligned` that records its tables of estimated success rates."""


SAMPLERS: dict[str, type[Any]] = {"adaptive rejection": RecordingRejection, "ASAp": RecordingGrammarAligned}
"""Samplers whose successive samples are checked."""


def measure_error(sampler: Any, tree: RandomTree, verifier: Verifier) -> tuple[float, float]:
    """Compare the exact output probabilities of a sampler with its target on a random tree.

    The target is the model's distribution given that the output is allowed.

    Args:
        sampler: The sampler.
        tree: Random tree, which defines the model and the allowed outputs.
        verifier: Verifier that the sampler uses.

    Returns:
        Largest absolute error of an output probability, and the expected number of model calls. The probability that
        the sampler returns no output counts as an error.
    """
    found = exact_distribution(sampler, tree.table(), verifier)
    target = target_distribution(tree.table(), tree.allows)
    outputs = {**target, **found.probabilities}
    errors = (abs(found.probabilities.get(x, 0.0) - target.get(x, 0.0)) for x in outputs)
    return max(*errors, found.failed, found.never_halts), found.expected_calls


def measure_trees(seed: int, history: int) -> MeasuredRows:
    """Test on random models whether two samplers that learn from earlier samples are exact.

    The models are small trees of token sequences, of which a constraint allows some.

    Args:
        seed: Seed of the trees and of the simulated samples.
        history: Number of successive samples before the last one.

    Yields:
        One row per verifier and sampler. "first_error", "second_error" and "later_error" are the largest
        errors of an output probability, for the first, the second and later samples. "acceptance_increase" is
        the smallest increase of the acceptance probability after a rejected attempt.
    """
    eos = (None, 1)[seed % 2]
    small, wide = viable(RandomTree(seed, eos=eos)), viable(RandomTree(seed, vocab=3, horizon=2, eos=eos))
    for name, tree, verifier in (
        ("function", small, FunctionVerifier(small.allows)),
        ("mask", wide, TreeMaskVerifier(wide.allows)),
    ):
        for label, kind in SAMPLERS.items():
            simulated, first = kind(), kind()
            generate(
                tree.table(), sampler=simulated, verifier=verifier, num_samples=history + 1, seed=tree.seed
            )
            error, calls = measure_error(first, tree, verifier)
            later = [
                measure_error(kind(start=table), tree, verifier)
                for table in dict.fromkeys(simulated.successive)
            ]
            second = [
                measure_error(kind(start=table), tree, verifier)[0] for table in dict.fromkeys(first.left)
            ]
            yield {
                "measure": "tree",
                "tree": str(tree),
                "verifier": name,
                "sampler": label,
                "first_error": error,
                "later_error": max(each for each, _ in later),
                "second_error": max(second),
                "tables": len(second),
                "calls": calls,
                "later_calls": later[-1][1],
                **_measure_acceptance_increase(first.attempts, tree, verifier),
            }


def _measure_acceptance_increase(
    attempts: list[tuple[Table, Table]], tree: RandomTree, verifier: Verifier
) -> dict[str, float]:
    """Return the smallest increase of the acceptance probability after a rejected attempt.

    The acceptance probability of a table is computed for a single attempt that starts from it.
    """
    if not attempts:
        return {}
    accepted = {}
    for table in dict.fromkeys(table for pair in attempts for table in pair):
        one = RecordingRejection(start=table, max_attempts=1)
        accepted[table] = 1.0 - exact_distribution(one, tree.table(), verifier).failed
    return {
        "acceptance_increase": min(accepted[after] - accepted[before] for before, after in attempts),
        "first_acceptance": accepted[None],
    }


def measure_rare_trees(seed: int, history: int) -> MeasuredRows:
    """Measure the distance of grammar-aligned decoding from its target if only few outputs are allowed.

    Grammar-aligned decoding masks forbidden tokens and learns from earlier samples. Its output distribution on a random
    tree of token sequences is computed after each sample.

    Args:
        seed: Seed of the tree and of the simulated samples.
        history: Number of successive samples before the last one.

    Yields:
        One row per number of earlier samples, with the total variation distance of the next sample's distribution from
        the target.
    """
    tree = RareTree(seed, vocab=3 + seed % 2, horizon=6 - seed % 2)
    verifier = TreeMaskVerifier(tree.allows)
    target = target_distribution(tree.table(), tree.allows)
    simulated = RecordingGrammarAligned()
    generate(tree.table(), sampler=simulated, verifier=verifier, num_samples=history + 1, seed=seed)
    allowed = sum(tree.distribution()[output] for output in tree.outputs())
    for number, table in enumerate([None, *simulated.successive]):
        found = exact_distribution(RecordingGrammarAligned(start=table), tree.table(), verifier).probabilities
        row = {"measure": "rare tree", "sampler": "ASAp", "earlier": number, "allowed_mass": allowed}
        yield {**row, "tv": total_variation(found, target)}
