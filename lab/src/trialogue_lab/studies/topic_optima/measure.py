"""Tasks of a run: optimal weights of a one-layer transformer on documents of topic models.

In a topic model, each topic has v words, and a document consists of a few topics. The loss depends on two
attention weights: beta for the same word, and alpha for other words of the same topic. Both are relative to
the weight of words of other topics.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from trialogue.data import BertMasking, TopicModel
from trialogue.randomness import generator
from trialogue_lab.data.batch_draw import sample_document_batch
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.topic_optima.config import Config
from trialogue_lab.studies.topic_training.matrices import compute_entry_means
from trialogue_lab.theory import topics as theory

RIDGES = (1e-3, 1e-5, 1e-7, 1e-9)
LOW, HIGH = -4.0, 7.0
"""Base-10 logarithms of the ends of both axes of a landscape"""
LOW_LOSS = 0.1
"""Losses are low up to this height above the minimum, as a share of the height at alpha = beta = 0."""
THESIS = {"topics": 10, "words_per_topic": 10}
CONCENTRATION, LENGTHS = 0.1, (100, 150)
"""Concentration of topic shares, and smallest and largest document length, in the thesis' experiments"""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which computes optimal weights of a one-layer transformer.

    The transformer predicts masked words of documents from a topic model, in which every topic has its own words.

    Args:
        config: Settings of the run.

    Returns:
        One task per small topic model, one per large topic model, one per plot of the loss over the attention weights,
        and one task for documents of different lengths.
    """
    return [
        *(
            Part("documents-{}-{}-{}".format(*size), partial(_measure_documents, config, size))
            for size in config.sizes
        ),
        *(Part(f"minima-{tau}", partial(_measure_minima, config, tau)) for tau in config.taus),
        *(
            Part(f"landscape-{tau}", partial(_measure_landscape, config, tau))
            for tau in config.landscape_taus
        ),
        Part("lengths", partial(_measure_lengths, config)),
    ]


def make_masking(config: Config) -> BertMasking:
    """Return the masking of tokens with the probabilities of the config."""
    return BertMasking(**config.shared(BertMasking))


def compute_population(model: TopicModel, masking: BertMasking) -> tuple[Tensor, Tensor]:
    """Compute the exact distributions of inputs and targets in masked-word prediction.

    Documents have infinitely many words, and attention is uniform. The distributions then depend only on the
    set of topics of a document.

    Args:
        model: Topic model with T topics of v words and a fixed number of topics per document.
        masking: Probabilities with which words are masked or replaced.

    Returns:
        The distributions of input tokens and of target words, both (T v + 1, sets), float64. Row 0 is [MASK],
        and every column belongs to one set of topics.
    """
    tau = model.topics_per_document
    assert tau is not None
    shares = torch.zeros(math.comb(model.topics, tau), model.topics, dtype=torch.float64)
    for row, chosen in enumerate(combinations(range(model.topics), tau)):
        shares[row, list(chosen)] = 1 / tau
    words = shares.repeat_interleave(model.words_per_topic, 1) / model.words_per_topic
    return masking.read(words).T, torch.nn.functional.pad(words.T, (0, 0, 1, 0))


def _measure_documents(config: Config, size: tuple[int, int, int], _: Path) -> MeasuredRows:
    model, masking = TopicModel(*size), make_masking(config)
    shape = dict(zip(("topics", "words_per_topic", "tau"), size, strict=True))
    read, target = compute_population(model, masking)
    moments = theory.compute_moments(model, masking)
    optimum = theory.optimal_values(model, **config.shared(BertMasking))
    full = TopicModel(size[0], size[1], size[0])
    full_read, full_target = compute_population(full, masking)
    # The matrix of least norm that fits the only distribution.
    least_norm = full_target @ torch.linalg.pinv(full_read)
    bias, printed_bias = (theory.embedding_bias(model, masking, printed) for printed in (False, True))
    example, printed = (theory.optimal_embedding(model, masking, each) for each in (False, True))

    def misfit(embedding: Tensor, offset: Tensor) -> float:
        return float((embedding @ read + offset[:, None] - target).abs().max())

    yield {
        "kind": "model",
        **shape,
        "hessian_rank": int(torch.linalg.matrix_rank(moments.read, rtol=1e-10)),
        "formula_error": float((theory.least_squares(moments) - optimum).abs().max()),
        "formula_violation": theory.values_violation(optimum, model, masking),
        "example_printed": misfit(printed, printed_bias),
        "example_printed_mended_bias": misfit(printed, bias),
        "example": misfit(example, bias),
        "with_all_topics_fits": float((least_norm @ full_read - full_target).abs().max()),
        "with_all_topics_violation": theory.values_violation(least_norm, model, masking),
        "law_error": float(read.sum(0).sub(1).abs().max()),
    }
    for ridge in RIDGES:
        distance = float((theory.least_squares(moments, ridge) - optimum).abs().max())
        yield {"kind": "ridge", **shape, "ridge": ridge, "distance": distance}
    unseen = torch.eye(len(read), dtype=torch.float64) - read @ torch.linalg.pinv(read)
    for seed in config.seeds:
        member = theory.optimal_member(model, masking, seed)
        noise = torch.randn(len(read), len(read), generator=generator(seed, "unseen"), dtype=torch.float64)
        yield {
            "kind": "member",
            **shape,
            "seed": seed,
            "misfit": float((member @ read - target).abs().max()),
            "other_violation": theory.values_violation(optimum + noise @ unseen, model, masking),
            "z": _compute_rate_error(model, masking, config.words, seed),
        }


def _compute_rate_error(model: TopicModel, masking: BertMasking, words: int, seed: int) -> float:
    """Return the largest error of a formula for the frequencies of input tokens on a simulated document.

    The formula is Proposition 2.1.1, and the error is in standard errors.
    """
    tokens = sample_document_batch(model, 1, words, seed).tokens[0]
    random = generator(seed, "topic-optima", "read")
    read = masking.read_where_masked(torch.eye(model.vocab_size, dtype=torch.float64))[tokens]
    drawn = torch.multinomial(read, 1, generator=random)[:, 0]
    inputs = torch.where(torch.rand(words, generator=random) < masking.p_mask, drawn, tokens + 1)
    counts = torch.bincount(inputs, minlength=model.vocab_size + 1).double()
    hidden, inside, outside = model.rates(masking)
    present = torch.zeros(model.topics).index_fill_(0, tokens // model.words_per_topic, 1.0)
    own = present.repeat_interleave(model.words_per_topic).double()
    rates = torch.cat((torch.tensor([hidden], dtype=torch.float64), outside + (inside - outside) * own))
    return float(((counts - words * rates) / (words * rates * (1 - rates)).sqrt()).abs().max())


def _measure_minima(config: Config, tau: int, _: Path) -> MeasuredRows:
    model = TopicModel(tau * tau, config.many, tau)
    yield from _measure_optima(model, config, "minimum")


def _measure_optima(model: TopicModel, config: Config, kind: str) -> MeasuredRows:
    masking = make_masking(config)
    for values in ("block", "diagonal"):
        for variant in ("printed", "mask", "nomask"):
            bounds = theory.attention_bounds(model, masking, values, variant)
            alpha, beta = theory.optimal_attention(model, masking, values, variant)
            settings = config.shared(BertMasking) | {"values": values, "variant": variant}
            loss: Callable[..., float] = partial(theory.attention_loss, model, **settings)
            yield {
                "kind": kind,
                "topics": model.topics,
                "tau": model.topics_per_document,
                "values": values,
                "variant": variant,
                "alpha": alpha,
                "beta": beta,
                "loss": loss(alpha, beta),
                "uniform": loss(1.0, 1.0),
                "low": bounds.low,
                "high": bounds.high,
                "leading": bounds.optimum,
                "leading_loss": bounds.loss,
                # Positive inside the printed interval.
                "inside": min(math.log(beta / bounds.low), math.log(bounds.high / beta)),
                "ratio_inside": math.log(bounds.ratio * beta / alpha),
                "over_leading": beta / bounds.optimum,
                "per_topic": beta
                / (model.topics_per_document or 1)
                / (1 if values == "block" else config.many),
                "kept": theory.constants(model, masking).c3,
            }


def _measure_landscape(config: Config, tau: int, _: Path) -> MeasuredRows:
    topics, size = config.landscape
    model, probabilities = TopicModel(topics, size, tau), config.shared(BertMasking)
    yield from _measure_optima(model, config, "landscape-minimum")
    axis = np.logspace(LOW, HIGH, config.points)
    coarse = np.logspace(LOW, HIGH, config.drawn)
    for values in ("block", "diagonal"):
        for variant in ("printed", "mask"):
            loss = partial(theory.attention_loss, model, **probabilities, values=values, variant=variant)
            table = loss(alpha=axis[:, None], beta=axis)
            alpha, beta = theory.optimal_attention(model, make_masking(config), values, variant)
            smallest, without = loss(alpha=alpha, beta=beta), loss(alpha=0.0, beta=0.0)
            level = smallest + LOW_LOSS * (without - smallest)
            rows, columns = (table <= level).nonzero()
            gammas = (axis[rows] * (size - 1) + axis[columns]) / size
            # With diagonal values, the loss is low even at alpha = 0.
            yield {
                "kind": "region",
                "tau": tau,
                "values": values,
                "variant": variant,
                "alpha_low": _find_edge(loss, "alpha", level, alpha) if values == "block" else 0.0,
                "beta_low": _find_edge(loss, "beta", level, beta * (size if values == "block" else 1)),
                "gamma_low": float(gammas.min()),
                "gamma_high": float(gammas.max()),
                "most_ratio": float((axis[rows] / axis[columns]).max()),
            }
        picture = theory.attention_loss(model, coarse[:, None], coarse, **probabilities, values=values)
        for alpha, line in zip(coarse.tolist(), compute_log_heights(picture).tolist(), strict=True):
            columns = {f"beta_{place}": height for place, height in enumerate(line)}
            yield {"kind": "landscape", "tau": tau, "values": values, "alpha": alpha, **columns}
    gamma = theory.optimal_attention(model, make_masking(config))[0]
    mixtures = np.linspace(0, gamma, 9)
    losses = theory.attention_loss(model, mixtures, size * gamma - (size - 1) * mixtures, **probabilities)
    yield {"kind": "gamma", "tau": tau, "gamma": gamma, "differ": float(np.ptp(losses) / losses.min())}


def compute_log_heights(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log10 of the relative height of a loss above its minimum.

    Args:
        table: Losses on a grid.

    Returns:
        log10(height / largest height + 1e-4), in the shape of `table`, rounded to three digits.
    """
    above = (table - table.min()) / np.ptp(table)
    return np.round(np.log10(above + 1e-4), 3)


def _find_edge(loss: Callable[..., float], axis: str, level: float, best: float) -> float:
    """Return the point below `best` on one axis at which the loss equals `level`, the edge of the low-loss region.

    The axes are the attention weights alpha and beta. The other weight is zero.
    """
    other = {"alpha": "beta", "beta": "alpha"}[axis]
    ends = (math.log(10.0) * LOW, math.log(best))
    return math.exp(brentq(lambda log: loss(**{axis: math.exp(log), other: 0.0}) - level, *ends, xtol=1e-10))


def _measure_lengths(config: Config, _: Path) -> MeasuredRows:
    masking = make_masking(config)
    thesis = TopicModel(**THESIS, concentration=CONCENTRATION)
    restricted = TopicModel(**THESIS, topics_per_document=3)
    least_norm = theory.optimal_values(restricted, **config.shared(BertMasking))
    for length in (None, *config.lengths):
        model = restricted if length else thesis
        moments = theory.compute_moments(model, masking, length or LENGTHS)
        optimum = theory.least_squares(moments)
        yield {
            "kind": "length",
            "law": "tau = 3" if length else "Dirichlet",
            "length": length or LENGTHS[1],
            **_average_entries(optimum, model),
            "loss": theory.squared_loss(optimum, moments),
            "loss_of_least_norm": theory.squared_loss(least_norm, moments),
        }
    moments = theory.compute_moments(restricted, masking, LENGTHS)
    for ridge in np.logspace(-8, -2, 25).tolist():
        yield {
            "kind": "penalty",
            "ridge": ridge,
            **_average_entries(theory.least_squares(moments, ridge), restricted),
        }


def _average_entries(values: Tensor, model: TopicModel) -> dict[str, float]:
    """Return mean entries of a value matrix by relation of the two words, and sums of rows within topics.

    Two words are equal, of the same topic, or of different topics.
    """
    found = compute_entry_means(values, model)
    means = {name: found[name] for name in ("diagonal", "block", "other")}
    return means | {"row": float((values[1:, 1:] * model.same_topic().bool()).sum(1).mean())}
