"""Constrained generation that verifies every possible next token (thesis, section 3.1.3).

With a perfect verifier (one that accepts exactly the prefixes with an accepted completion), it needs at most
|Sigma| D verifier calls for D tokens from a vocabulary Sigma.
"""

from typing import NamedTuple

from torch import Tensor

from trialogue.data.puzzles.hidden_string import ConstrainedTask
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.oracles import Decoding, Verifier
from trialogue.samplers import MaskedDecoding, generate


class GenerationResult(NamedTuple):
    """Result of constrained generation.

    Attributes:
        output: Generated string, or None if it was not accepted.
        verifier_calls: Number of verified strings.
        queries: Number of model calls.
    """

    output: Prefix | None
    verifier_calls: int
    queries: int


class _SingleStringVerifier(Verifier):
    """Verifier that is called once for each string (Definition 3.1.3), without a mask over all next tokens."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        return self._verifier.values(decoding, rows)


def generate_by_trying(task: ConstrainedTask, *, seed: int = 0) -> GenerationResult:
    """Generate a string by verifying each possible next token and sampling one of the accepted tokens.

    Every extended prefix counts as one verifier call.

    Args:
        task: Next-token model, verifier and length of the strings.
        seed: Seed of the generation.
    """
    run = generate(
        task.oracle,
        sampler=MaskedDecoding(),
        verifier=_SingleStringVerifier(task.verifier),
        max_new_tokens=task.length,
        seed=seed,
    )
    output = run.sequences()[0] if bool(run.accepted[0]) else None
    return GenerationResult(output, int(run.verifier_calls[0]), int(run.queries[0]))
