"""A trained probe as a verifier: its probability that a prefix is correct, read off the oracle's own pass."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from trialogue.models.probe import Probe
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import validated


@validated
class ProbeVerifier(Verifier):
    """P(correct) by `probe` on the hidden state after `layer` blocks; -1 is what the output head reads.

    The hidden state comes from the evaluation that also answers for the next token, so judging a prefix costs no
    further pass. Put a `Threshold` around it for samplers that reject.
    """

    most = 1.0

    def __init__(self, probe: Probe, layer: Annotated[int, Ge(-1)] = -1) -> None:
        self._probe, self._layer = probe, layer
        self.layers = () if layer == -1 else (layer,)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """P(correct) (n,) of the sequences in `rows` (n,)."""
        states = decoding.hidden(self._layer, rows)
        return self._probe.to(states.device).probability(states.float()).double().to(rows.device)
