"""Exact output distributions on random trees, for samples that follow one another."""

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
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import Objects
from trialogue.samplers.prefix.rejection_table import RejectionTable
from trialogue.testing.trees import Prefix, RandomTree, viable
from trialogue.verifiers import FunctionVerifier
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.exact_rejection.grammar_aligned import GrammarAligned

Table = RejectionTable | None
_RARE_OUTPUTS = 4


class TreeMask(FunctionVerifier):
    """Verifier of a random tree that returns the verdicts of all next tokens at once, as a grammar does."""

    def __init__(self, allows: Callable[[Prefix], bool]) -> None:
        super().__init__(allows)
        self._allows = allows

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the verdicts (n, vocab) float64 of the selected prefixes followed by each token."""
        prefixes = [
            tuple(decoding.tokens[row, : int(decoding.lengths[row])].tolist()) for row in rows.tolist()
        ]
        verdicts = [
            [self._allows((*prefix, token)) for token in range(decoding.vocab_size)] for prefix in prefixes
        ]
        return torch.tensor(verdicts, dtype=torch.float64)


@dataclass(frozen=True)
class RareTree(RandomTree):
    """Random tree on which only four outputs are allowed, chosen at random."""

    @cache  # noqa: B019 (there are only a few small trees)
    def outputs(self) -> tuple[Prefix, ...]:
        """Return the allowed outputs."""
        leaves = sorted(self.distribution())
        chosen = numpy_generator(self.seed, "allowed outputs").choice(
            len(leaves), _RARE_OUTPUTS, replace=False
        )
        return tuple(leaves[index] for index in chosen)

    @cache  # noqa: B019
    def allows(self, prefix: Prefix) -> bool:
        """Return whether a prefix begins an allowed output."""
        return any(output[: len(prefix)] == prefix for output in self.outputs())


@dataclass(frozen=True)
class Observed:
    """Mixin for samplers that start from a given table and record the tables that they leave.

    Args:
        start: Table from which every sample starts.
        successive: Tables that successive samples of a run leave, in order.
        left: Tables that finished samples leave.
        attempts: Tables of a prompt before and after a rejected attempt.
    """

    start: Table = None
    successive: list[Table] = field(default_factory=list, compare=False)
    left: list[Table] = field(default_factory=list, compare=False)
    attempts: list[tuple[Table, Table]] = field(default_factory=list, compare=False)

    def init(self, decoding: Decoding) -> Any:
        """Return states that start from the table `start`."""
        state: Any = super().init(decoding)  # type: ignore[misc]
        return state._replace(table=Objects([self.start] * len(decoding.lengths)))

    def merged(self, start: Any, ends: Any) -> Any:
        """Record the table from which the next sample of a run starts."""
        state: Any = super().merged(start, ends)  # type: ignore[misc]
        self.successive.append(state.table.items[0])
        return state

    def step(self, decoding: Decoding, state: Any, verifier: Judge, choose: Choose) -> tuple[Moves, Any]:
        """Record the tables of rows that finish a sample, or an attempt that is rejected."""
        moves, after = super().step(decoding, state, verifier, choose)  # type: ignore[misc]
        for row, (before, now) in enumerate(zip(state.table.items, after.table.items, strict=True)):
            if moves.done[row]:
                self.left.append(now)
            elif now is not before:
                self.attempts.append((before, now))
        return moves, after


@dataclass(frozen=True)
class ObservedRejection(Observed, AdaptiveRejection):
    """`AdaptiveRejection` with one table for successive samples."""

    share: int | None = 1


@dataclass(frozen=True)
class ObservedGrammarAligned(Observed, GrammarAligned):
    """`GrammarAligned` with records of its success rates."""


SAMPLERS: dict[str, type[Any]] = {"adaptive rejection": ObservedRejection, "ASAp": ObservedGrammarAligned}
"""Samplers whose successive samples are checked."""


def error_of(sampler: Any, tree: RandomTree, verifier: Verifier) -> tuple[float, float]:
    """Return the largest error of an output probability of a sampler, and its expected number of model calls.

    The error is compared with the model's distribution on the tree, restricted to allowed outputs. It includes the
    probability that the sampler returns no output.
    """
    found = exact_distribution(sampler, tree.table(), verifier)
    target = target_distribution(tree.table(), tree.allows)
    outputs = {**target, **found.probabilities}
    errors = (abs(found.probabilities.get(x, 0.0) - target.get(x, 0.0)) for x in outputs)
    return max(*errors, found.failed, found.never_halts), found.expected_calls


def tree_rows(seed: int, history: int) -> MeasuredRows:
    """Check samples on two random trees, one for a function of prefixes as verifier and one for a mask.

    Args:
        seed: Seed of the trees and of the simulated histories.
        history: Number of successive samples that leave a table behind.

    Yields:
        One row per verifier and sampler: the largest error of the first sample, of a sample after each of the
        successive samples, and of the second sample after any table that the first can leave; and the smallest
        increase of the acceptance probability after a rejected attempt.
    """
    eos = (None, 1)[seed % 2]
    small, wide = viable(RandomTree(seed, eos=eos)), viable(RandomTree(seed, vocab=3, horizon=2, eos=eos))
    for name, tree, verifier in (
        ("function", small, FunctionVerifier(small.allows)),
        ("mask", wide, TreeMask(wide.allows)),
    ):
        for label, kind in SAMPLERS.items():
            simulated, first = kind(), kind()
            generate(
                tree.table(), sampler=simulated, verifier=verifier, num_samples=history + 1, seed=tree.seed
            )
            error, calls = error_of(first, tree, verifier)
            later = [
                error_of(kind(start=table), tree, verifier) for table in dict.fromkeys(simulated.successive)
            ]
            second = [error_of(kind(start=table), tree, verifier)[0] for table in dict.fromkeys(first.left)]
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
                **_acceptance(first.attempts, tree, verifier),
            }


def _acceptance(
    attempts: list[tuple[Table, Table]], tree: RandomTree, verifier: Verifier
) -> dict[str, float]:
    """Return the smallest increase of the acceptance probability after a rejected attempt.

    The acceptance probability of an attempt is computed by running one attempt from each table.
    """
    if not attempts:
        return {}
    accepted = {}
    for table in dict.fromkeys(table for pair in attempts for table in pair):
        one = ObservedRejection(start=table, max_attempts=1)
        accepted[table] = 1.0 - exact_distribution(one, tree.table(), verifier).failed
    return {
        "acceptance_increase": min(accepted[after] - accepted[before] for before, after in attempts),
        "first_acceptance": accepted[None],
    }


def rare_rows(seed: int, history: int) -> MeasuredRows:
    """Measure how far successive samples of grammar-aligned decoding are from the target where few outputs are allowed.

    Args:
        seed: Seed of the tree and of the simulated history.
        history: Number of successive samples that leave success rates behind.

    Yields:
        One row per number of earlier samples, with the total variation distance of the next sample from the target.
    """
    tree = RareTree(seed, vocab=3 + seed % 2, horizon=6 - seed % 2)
    verifier = TreeMask(tree.allows)
    target = target_distribution(tree.table(), tree.allows)
    simulated = ObservedGrammarAligned()
    generate(tree.table(), sampler=simulated, verifier=verifier, num_samples=history + 1, seed=seed)
    allowed = sum(tree.distribution()[output] for output in tree.outputs())
    for number, table in enumerate([None, *simulated.successive]):
        found = exact_distribution(ObservedGrammarAligned(start=table), tree.table(), verifier).probabilities
        row = {"measure": "rare tree", "sampler": "ASAp", "earlier": number, "allowed_mass": allowed}
        yield {**row, "tv": total_variation(found, target)}
