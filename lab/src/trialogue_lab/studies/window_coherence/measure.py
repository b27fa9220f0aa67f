"""Tasks of a run: networks that are trained on stored patterns, and how long their text follows a pattern."""

import copy
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.coherence import measure_coherence
from trialogue.models import Cropped, Endless, Transformer, TransformerConfig
from trialogue.oracles import Autoregressive
from trialogue.randomness import derive_seed
from trialogue.training import TrainingConfig, train
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.window_coherence.config import SLIDING, Config
from trialogue_lab.theory.potts.domain_walls import crossing_length
from trialogue_lab.theory.potts.map import AutoregressiveHamiltonian, convert_to_hamiltonian
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival

Array = NDArray[np.float64]
_RATE_TOLERANCE = 1e-7


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure how long generated text follows a stored pattern.

    Args:
        config: Settings of the run.

    Returns:
        One task that computes exact values for the training corpus and for optimal models, and one task per network,
        which trains it and measures its text.
    """
    networks = [
        Part(f"{seed}-{name.replace(' ', '-')}", partial(measure_network, config, name, seed), lane=str(seed))
        for seed in config.seeds
        for name in config.networks
    ]
    return [Part("exact", partial(measure_references, config)), *networks]


@cache
def make_survival_chains(config: Config) -> list[PatternSurvival]:
    """Return one Markov chain of generated text for each stored pattern.

    The states of the chain are the last tokens of the text. The text starts with the pattern, and the chain ends as
    soon as the text no longer follows it.

    Args:
        config: Settings with the patterns.
    """
    corpus = config.corpus()
    return [
        PatternSurvival(corpus.patterns, config.measured_window, pattern * corpus.period, corpus.vocab_size)
        for pattern in range(len(corpus.patterns))
    ]


def apply_temperature(log_probs: Tensor, temperature: float) -> Tensor:
    """Return next-token log-probabilities at a temperature.

    Args:
        log_probs: Log-probabilities (..., V) at temperature 1.
        temperature: Temperature, which divides the log-probabilities before they are normalized again.

    Returns:
        Normalized log-probabilities (..., V).
    """
    return (log_probs / temperature).log_softmax(-1)


def compute_rates(config: Config, log_probs: Tensor) -> Array:
    """Compute the exact rate at which text of a model leaves each stored pattern.

    For text of n tokens, the probability that it still follows its pattern falls like exp(-rate n).

    Args:
        config: Settings with the patterns.
        log_probs: Next-token log-probabilities (contexts, V) for all contexts of a fixed number of previous tokens.

    Returns:
        Rates (patterns,), in nats per token.
    """
    return np.array(
        [
            chain.decay_rate(log_probs, tolerance=_RATE_TOLERANCE).rate
            for chain in make_survival_chains(config)
        ]
    )


def compute_curves(config: Config, log_probs: Sequence[Tensor]) -> Array:
    """Compute the probability that text still follows its pattern, after each token.

    Args:
        config: Settings with the patterns and the number of generated tokens `horizon`.
        log_probs: One tensor of next-token log-probabilities per pattern, for text that starts with this pattern.

    Returns:
        Probabilities (patterns, horizon + 1).
    """
    pairs = zip(make_survival_chains(config), log_probs, strict=True)
    return np.stack([chain.curve(each, config.horizon) for chain, each in pairs])


def compute_late_error(config: Config, curves: Array, rates: Array) -> float:
    """Return how far the rate at which text leaves its pattern is from its limit, at the end of the text.

    The result is |log(rate at the end / limit)|. The rate describes how fast the probability falls that text still
    follows its pattern.

    Args:
        config: Settings with the window (in tokens) at the end of the text over which the decay is averaged.
        curves: Probabilities (patterns, horizon + 1) that text still follows its pattern after 0, 1, ...
            tokens.
        rates: Limits (patterns,) of the rates for long texts, in nats per token.
    """
    span = config.measured_window
    late = np.log(curves[:, -1 - span] / curves[:, -1]) / span
    return float(np.abs(np.log(late / rates)).max())


def measure_references(config: Config, _: Path) -> MeasuredRows:
    """Compute how fast text of the training corpus and of optimal models stops following its pattern.

    An optimal model predicts the next token by its exact probability given a fixed number of previous tokens.

    Args:
        config: Settings of the run.

    Yields:
        One row for the corpus, and one row per number of previous tokens and temperature.
    """
    corpus = config.corpus()
    log_probs_of_corpus = [
        corpus.label_log_probs(pattern * corpus.period, config.measured_window, config.horizon)[:, None]
        for pattern in range(len(corpus.patterns))
    ]
    survival = compute_curves(config, log_probs_of_corpus).mean(0)
    late = config.measured_window
    yield {
        "kind": "corpus",
        "survival": float(survival[-1]),
        "rate": float(-np.log(survival[-1] / survival[late]) / (config.horizon - late)),
    }
    for window in range(1, config.best_windows + 1):
        log_probs = corpus.context_log_probs(window)
        for temperature in config.exact_temperatures:
            rate = float(compute_rates(config, apply_temperature(log_probs, temperature)).mean())
            yield {"kind": "best", "window": window, "temperature": temperature, "rate": rate}


def train_network(config: Config, name: str, seed: int) -> tuple[Transformer, float]:
    """Train a network on the corpus of noisy periodic patterns.

    A network with a cropped context is trained on sequences of its context length plus one token. The other networks
    are trained on full sequences. Sliding attention uses no positional encoding, so its predictions depend only on the
    visible tokens.

    Args:
        config: Settings of the networks and the training.
        name: Name of the network.
        seed: Seed of the training.

    Returns:
        The network, and its mean loss over the last tenth of the steps, in nats per token.
    """
    corpus, window = config.corpus(), config.networks[name]
    length = config.length if window is None or name == SLIDING else window + 1
    shape = config.shared(TransformerConfig) | ({} if name == SLIDING else {"attention_window": None})
    model = Transformer(
        TransformerConfig(
            **shape,
            vocab_size=corpus.vocab_size,
            mlp_width=4 * config.width,
            max_length=length,
            positions="none" if name == SLIDING else "learned",
        ),
        derive_seed(seed, "window-coherence", name),
    )
    rows = max(1, round(config.batch_tokens / length))
    recipe = TrainingConfig(
        steps=config.training_steps,
        batch_size=rows,
        learning_rate=config.learning_rate,
        weight_decay=0.0,
        warmup_steps=config.training_steps // 10,
        seed=seed,
        bf16=False,
    )

    def batch(step: int) -> Tensor:
        return corpus.sample(rows, length, derive_seed(seed, "window-coherence", "batch", name, step))

    losses = train(model, batch, recipe, progress=False, loss=compute_token_loss).losses
    return model, float(losses[-max(1, config.training_steps // 10) :].mean())


def compute_token_loss(model: Transformer, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy of every token, without an end token.

    Args:
        model: The network.
        tokens: Token ids (n, L).

    Returns:
        The loss () in nats.
    """
    inputs = F.pad(tokens[:, :-1], (1, 0), value=model.bos)
    return F.cross_entropy(model(inputs).flatten(0, 1), tokens.flatten())


def measure_network(config: Config, name: str, seed: int, _: Path) -> MeasuredRows:
    """Train one network, and measure for how many tokens its generated text follows a pattern.

    Args:
        config: Settings of the run.
        name: Name of the network.
        seed: Seed of the training.

    Yields:
        The rows of `measure_text` at every temperature. A network that sees a fixed number of previous tokens also has
        one row with a theoretical bound. It has one more row per temperature with the exact rate at which its text
        leaves a pattern.
    """
    window = config.networks[name]
    model, loss = train_network(config, name, seed)
    oracle: Autoregressive = Endless(model)
    if window is not None and name != SLIDING:
        oracle = Cropped(oracle, window)
    network: dict[str, Any] = {"model": name, "seed": seed} | ({} if window is None else {"window": window})
    curves: dict[float, Array] = {}
    if window is not None:
        hamiltonian = make_hamiltonian(model, name, window)
        energies = hamiltonian.chain.energies
        max_energy = float(energies.max())
        bound = crossing_length(window + 1, max_energy, 1.0, config.corpus().labels)
        yield {"kind": "bound", **network, "max_energy": max_energy, "log_crossing": float(np.log(bound))}
        log_probs = -(energies + hamiltonian.offset).flatten(0, -2)
        for temperature in config.exact_temperatures:
            tempered_log_probs = apply_temperature(log_probs, temperature)
            rates = compute_rates(config, tempered_log_probs)
            row = {"kind": "rate", **network, "temperature": temperature, "rate": float(rates.mean())}
            if temperature in config.temperatures:
                curves[temperature] = compute_curves(config, [tempered_log_probs] * len(rates))
                row["late_error"] = compute_late_error(config, curves[temperature], rates)
            yield row
    for temperature in (*config.temperatures, 0.0):
        exact = curves[temperature].mean(0) if temperature in curves else None
        yield from measure_text(config, oracle, network | {"loss": loss}, temperature, exact)


def make_hamiltonian(model: Transformer, name: str, window: int) -> AutoregressiveHamiltonian:
    """Return an energy function for which text of a network is Boltzmann distributed.

    The energy is a sum over windows of successive tokens (Theorem 1.2).

    Args:
        model: The network.
        name: Name of the network. It determines whether the context is cropped or the attention slides.
        window: Number of previous tokens that the network sees.
    """
    # The map needs predictions that do not depend on the batch, which single precision does not give.
    oracle = Endless(copy.deepcopy(model).double())
    return convert_to_hamiltonian(oracle if name == SLIDING else Cropped(oracle, window), window)


def measure_text(
    config: Config, oracle: Autoregressive, network: dict[str, Any], temperature: float, exact: Array | None
) -> MeasuredRows:
    """Generate text with a model that continues each pattern, and measure how long it follows the pattern.

    Args:
        config: Settings of the run.
        oracle: The model that generates the text.
        network: Columns that are added to every row, including "seed".
        temperature: Sampling temperature. 0 for greedy decoding.
        exact: Exact probabilities (horizon + 1,) that text still follows its pattern after 0, 1, ... tokens, or None if
            they are unknown.

    Yields:
        One row of the kind "network".

        - "survival": share of texts that follow their pattern to the end.
        - "mean_run": mean number of tokens before a text leaves its pattern.
        - "walls": number of changes between patterns per token.

        At temperature 1, also one row of the kind "curve" for every third token, with the share of texts that still
        follow their pattern.
    """
    measured = measure_coherence(
        oracle,
        config.corpus().patterns,
        max_new_tokens=config.horizon,
        window=config.measured_window,
        temperature=temperature,
        repeats=config.periods,
        num_samples=1 if temperature == 0 else config.samples,
        seed=derive_seed(network["seed"], "window-coherence", "text"),
    )
    runs = measured.first_runs()
    # After one measured window, the noise-free prompt no longer affects the text.
    late = (runs.lengths - config.measured_window).clip(min=0)
    survival = runs.survival(np.arange(config.horizon + 1))
    row = {
        "kind": "network",
        **network,
        "temperature": temperature,
        "survival": float(survival[-1]),
        "mean_run": runs.restricted_mean(),
        "walls": measured.walls_per_token(),
        "late_ends": int(runs.ended[late > 0].sum()),
        "late_tokens": int(late.sum()),
    }
    if exact is not None:
        row |= {"exact_survival": float(exact[-1]), "exact_mean_run": float(exact[:-1].sum())}
    yield row
    for token in range(0, config.horizon + 1, 3) if temperature == 1 else ():
        row = {"kind": "curve", **network, "token": token, "survival": float(survival[token])}
        yield row | ({} if exact is None else {"exact_survival": float(exact[token])})
