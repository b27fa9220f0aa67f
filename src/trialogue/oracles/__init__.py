"""Base classes of models, verifiers and Markov chains.

An `Autoregressive` model opens a `Context` that evaluates prefixes incrementally. Samplers and verifiers do not use the
context directly. They receive a `Decoding`, a batch of sequences that grow and shrink. A `Masked` model or an `Energy`
evaluates whole sequences, and a `Chain` updates them.

Names of dimensions: `rows` is the number of sequences in a batch, `capacity` the maximum length of a sequence, `vocab`
the number of tokens, `features` the size of the features that a model computes for a prefix, `width` the size of a
hidden state, and `N` the number of sites of a whole sequence. Logarithms are natural.
"""

from trialogue.oracles.autoregressive import (
    Autoregressive,
    Context,
    Decoding,
    PrefixOracle,
    Target,
    Tokenizing,
    Verifier,
)
from trialogue.oracles.prefixes import as_context, as_oracle, next_log_probs
from trialogue.oracles.sequences import are_complete, enumerate_sequences, list_sites, pad_sequences
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
    "Target",
    "Tokenizing",
    "Verifier",
    "are_complete",
    "as_chain",
    "as_context",
    "as_model",
    "as_oracle",
    "enumerate_sequences",
    "list_sites",
    "next_log_probs",
    "pad_sequences",
]
