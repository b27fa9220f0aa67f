"""What a sampler may ask of a model, and what a verifier may look at: the whole contract.

An `Autoregressive` oracle opens a `Context` that evaluates prefixes incrementally. Samplers never see it; they see a
`Decoding`, a batch of sequences that grow and shrink. A `Verifier` looks at the same batch. A `Masked` oracle or an
`Energy` answers for whole sequences; a `Chain` moves them.

Names of dimensions: `rows` sequences of the batch, `capacity` the longest sequence it can hold, `vocab` tokens,
`features` whatever the oracle needs to answer for one prefix, `width` of a hidden state, `N` sites of a whole
sequence. Logarithms are natural.
"""

from trialogue.oracles.autoregressive import (
    Autoregressive,
    Context,
    Decoding,
    PrefixOracle,
    Tokenizing,
    Verifier,
)
from trialogue.oracles.prefixes import as_context, as_oracle, next_log_probs
from trialogue.oracles.sequences import ends, padded, sites_of, whole_sequences
from trialogue.oracles.structural import as_chain, as_model
from trialogue.oracles.whole import (
    Chain,
    Energy,
    Joint,
    Masked,
    SequenceModel,
    Sequences,
    StateT,
    StepInfo,
)

__all__ = [
    "Autoregressive",
    "Chain",
    "Context",
    "Decoding",
    "Energy",
    "Joint",
    "Masked",
    "PrefixOracle",
    "SequenceModel",
    "Sequences",
    "StateT",
    "StepInfo",
    "Tokenizing",
    "Verifier",
    "as_chain",
    "as_context",
    "as_model",
    "as_oracle",
    "ends",
    "next_log_probs",
    "padded",
    "sites_of",
    "whole_sequences",
]
