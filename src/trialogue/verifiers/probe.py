"""A verifier that applies a trained probe to the hidden states of the oracle."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from trialogue.models.networks.probe import Probe
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import validated


@validated
class ProbeVerifier(Verifier):
    """Verifier whose value is the probability, estimated by a probe, that a prefix is correct.

    The probe reads a hidden state of the forward pass that also computes the next-token distribution, so no additional
    forward pass is needed. For samplers that reject, wrap the verifier in a `Threshold`.

    Args:
        probe: Trained probe.
        layer: Number of blocks after which the hidden state is read. The default, -1, reads the input of the output
            head.
    """

    most = 1.0

    def __init__(self, probe: Probe, layer: Annotated[int, Ge(-1)] = -1) -> None:
        self._probe, self._layer = probe, layer
        self.layers = () if layer == -1 else (layer,)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the estimated probabilities that sequences are correct.

        Args:
            decoding: Batch of sequences. It provides the hidden states that the probe reads.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Probabilities (n,) float64, one for each index in `rows`.
        """
        states = decoding.hidden(self._layer, rows)
        return self._probe.to(states.device).probability(states.float()).double().to(rows.device)
