"""Generation by trying every next token: |Sigma| D calls of a verifier, if it is perfect (section 3.1.3)."""

from typing import NamedTuple

from torch import Tensor

from trialogue.data.puzzles.hidden_string import ConstrainedTask
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.oracles import Decoding, Verifier
from trialogue.samplers import MaskedDecoding, generate


class Generated(NamedTuple):
    """What was generated, None for FAIL, and the calls of the verifier and of the oracle."""

    output: Prefix | None
    verifier_calls: int
    queries: int


class _StringByString(Verifier):
    """`verifier` as Definition 3.1.3 has it: a function of one string, that cannot be asked for all next tokens."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        return self._verifier.values(decoding, rows)


def generated(task: ConstrainedTask, *, seed: int = 0) -> Generated:
    """Ask the verifier about every token that the oracle may give next, and draw one of those that it accepts.

    The calls are those for one string at a time: at most |Sigma| for each of the D tokens.
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
