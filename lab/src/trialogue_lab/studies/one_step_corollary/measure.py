"""Tasks of a run: exact probabilities, constructed decoders, and simulations."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

import torch

from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.one_step_corollary.config import Config
from trialogue_lab.studies.parallel_gap.cliques import measure_one_step, simulate_corollary
from trialogue_lab.theory.masking.parallel_decoder import kernel_decoder, map_decoder

_STEPS = 8


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which compare one joint sampler step with many parallel steps.

    Args:
        config: Settings of the run.

    Returns:
        One task computes exact probabilities for Ising models, and one task tests constructed parallel decoders. One
        task per seed simulates the samplers.
    """
    return [
        Part("exact", lambda _: measure_one_step(config.instances)),
        Part("decoders", lambda _: measure_decoders(config.decoder_sites)),
        *(Part(f"simulated-{seed}", partial(_simulate_instances, config, seed)) for seed in config.seeds),
    ]


def _simulate_instances(config: Config, seed: int, _: Path) -> MeasuredRows:
    return simulate_corollary(config.instances, config.runs, (seed,))


def measure_decoders(sizes: Sequence[int]) -> MeasuredRows:
    """Test that parallel decoders can compute any map from sequences to sequences (Propositions 4.1.2 and 4.1.3).

    A parallel decoder predicts all tokens of the next sequence independently, given the current sequence. Decoders are
    constructed for a random map, which assigns one next sequence to every sequence. Others are constructed for a
    product kernel, which assigns a distribution with independent tokens.

    Args:
        sizes: Numbers of tokens of a sequence.

    Yields:
        One row per size and vocabulary. `states_apart` is the number of sequences for which greedy decoding
        differs from the map within eight steps. `kernel_error` is the largest error of a probability of the
        kernel.
    """
    for sites, vocab in product(sizes, (2, 3)):
        stream = generator(0, "one-step-corollary", "decoder", sites, vocab)
        states = enumerate_sequences(vocab, sites)
        following = torch.randint(vocab, tuple(states.shape), generator=stream)
        decoder = map_decoder(following, vocab)
        places = vocab ** torch.arange(sites - 1, -1, -1)
        decoded = mapped = states
        apart = 0
        for _ in range(_STEPS):
            decoded, mapped = decoder.greedy(decoded), following[(mapped * places).sum(1)]
            apart += int((decoded != mapped).any(1).sum())
        kernel = torch.randn(*states.shape, vocab, dtype=torch.float64, generator=stream).softmax(-1)
        error = (kernel_decoder(kernel).predictions(states) - kernel).abs().max()
        yield {
            "kind": "decoder",
            "sites": sites,
            "vocab": vocab,
            "states_apart": apart,
            "kernel_error": float(error),
        }
