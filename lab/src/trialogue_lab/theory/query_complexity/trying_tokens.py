"""Generation with a perfect verifier by testing every next token: |Sigma| D verifier calls (section 3.1.3)."""

from typing import NamedTuple

from torch import Tensor

from trialogue.data.puzzles.hidden_string import ConstrainedTask
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.oracles import Decoding, Verifier
from trialogue.samplers import MaskedDecoding, generate


class Generated(NamedTuple):
    """Generated string, or None for FAIL, with the numbers of verifier and oracle calls."""

    output: Prefix | None
    verifier_calls: int
    queries: int


class _StringByString(Verifier):
    """A verifier of single strings (Definition 3.1.3), which cannot verify all next tokens in one call."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        return self._verifier.values(decoding, rows)


def generated(task: ConstrainedTask, *, seed: int = 0) -> Generated:
    """Verify each possible next token and sample one of the accepted ones.

    Verifier calls are counted per string, at most |Sigma| for each of the D tokens.
    """
    run = generate(
        task.oracle,
        sampler=MaskedDecoding(),
        verifier=_StringByString(task.verifier),
        max_new_tokens=task.length,
        seed=seed,
    )
    output = run.sequences()[0] if bool(run.accepted[0]) else None
    return Generated(output, int(run.verifier_calls[0]), int(run.queries[0]))
