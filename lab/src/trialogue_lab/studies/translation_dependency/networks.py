"""Networks that are trained on the artificial language: their translations and their exact output distributions."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from trialogue.generation.translation.scores import count_repeated_words, translation_quality
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.training.recipes import Recipe, load_or_train
from trialogue.training.translation.recipes import TranslationTraining, encode_pairs
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.translation_dependency import parallel_steps
from trialogue_lab.studies.translation_dependency.attention import summarize_attention
from trialogue_lab.studies.translation_dependency.config import DETERMINISTIC, ONE_STAGE, TWIN, Config
from trialogue_lab.studies.translation_dependency.exact import Distributions, TrueDistribution
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser
from trialogue_lab.studies.translation_dependency.language import SPECIAL, Translations

Tokens = list[list[int]]
KEPT: tuple[Literal["nothing", "stutter"], ...] = ("nothing", "stutter")
"""Tokens that a pass does not replace: none, or tokens whose replacement would repeat the previous token."""


def make_recipe(config: Config, arm: str, seed: int) -> Recipe[EncoderDecoder]:
    """Return the architecture, the data and the training settings of a translation network.

    Args:
        config: Settings of the language and the training.
        arm: Name of the network: "twin" for the autoregressive one, or the name of a refiner, for example "refiner, S =
            2". A refiner predicts all target tokens in parallel and revises them in several passes.
        seed: Seed of the sentences, the translations and the initial weights.
    """
    language = config.language(1 if arm == DETERMINISTIC else 2)
    sources = language.sources(config.pairs, config.source_lengths, seed=seed)
    pairs = encode_pairs(sources, language.translate(sources, seed=seed), config.longest)
    training = TranslationTraining(
        **config.shared(TranslationTraining),
        mlp_width=4 * config.width,
        max_length=config.longest,
        activation="gelu",
        stages=1 if arm == ONE_STAGE else 2,
        steps=config.training_steps,
        learning_rate=2e-3,
        optimizer="adamw",
        bf16=False,
        seed=seed,
    )
    return (training.twin if arm == TWIN else training.refiner)(language.vocab_size, *pairs)


def measure_network(config: Config, arm: str, seed: int, artifacts: Path) -> MeasuredRows:
    """Train one translation network on the artificial language, and measure its translations and its attention.

    Args:
        config: Settings of the run.
        arm: Name of the network: "twin" for the autoregressive one, or the name of a refiner, for example "refiner, S =
            2". A refiner predicts all target tokens in parallel and revises them in several passes.
        seed: Seed of the training.
        artifacts: Folder of the trained networks.

    Yields:
        Three kinds of rows: scores of translations (one row per number of passes), exact output distributions of short
        sentences, and attention. The attention of the twin is not measured.
    """
    network = load_or_train(make_recipe(config, arm, seed), artifacts).network
    sources, *_ = _make_test_set(config, seed)
    if arm == TWIN:
        outputs = [found.best for found in BeamSearch().translate(CausalTranslator(network), sources)]
        yield {"kind": "quality", "keep": KEPT[0], "passes": 0, **_score_translations(config, seed, outputs)}
        yield from _compare_distributions(config, network, seed, is_twin=True)
        return
    refiner = Refiner(network)
    for keep in KEPT:
        for passes in config.tested_passes:
            # One hypothesis is the most probable length, and the chain takes the most probable tokens.
            beam = LengthBeam(steps=passes, hypotheses=1, chain=Refinement(keep=keep), drop_repeats=False)
            outputs = [found.best for found in beam.translate(refiner, sources, seed=seed)]
            yield {
                "kind": "quality",
                "keep": keep,
                "passes": passes,
                **_score_translations(config, seed, outputs),
            }
    yield from _compare_distributions(config, network, seed, is_twin=False)
    yield from summarize_attention(refined_attention(refiner, sources, config.attended_pass, seed))


@cache
def _make_test_set(config: Config, seed: int) -> tuple[Tokens, Tokens, list[Translations]]:
    """Return test sources, one reference translation each, and the distributions of correct translations."""
    language = config.language()
    sources = language.sources(config.sources, config.test_lengths, seed=seed + 1_000_000)
    references = language.translate(sources, seed=seed + 1_000_000)
    return sources, references, [language.condition(source, slips=0.0) for source in sources]


def _score_translations(config: Config, seed: int, outputs: Tokens) -> dict[str, float]:
    """Return BLEU, the rate of repeated words, and the share of correct translations."""
    _, references, correct = _make_test_set(config, seed)
    # Scores are computed on text, so every token id becomes a word.
    texts, reference_texts = (
        [" ".join(f"w{token}" for token in row) for row in rows] for rows in (outputs, references)
    )
    valid = [each.log_prob(output) > -torch.inf for each, output in zip(correct, outputs, strict=True)]
    return {
        "bleu": translation_quality(texts, reference_texts).bleu,
        "stutter": count_repeated_words(texts, reference_texts).rate,
        "valid": sum(valid) / len(valid),
    }


def _compare_distributions(config: Config, network: EncoderDecoder, seed: int, is_twin: bool) -> MeasuredRows:
    """Compare the output distributions of a network and of the perfect denoiser with the truth."""
    language = config.language()
    for number, source in enumerate(list_short_sources(config)):
        translations = language.condition(source)
        correct = language.condition(source, slips=0.0)
        truth = TrueDistribution(translations, correct, config.listed_words * 2)
        if is_twin:
            joint = _compute_twin_distribution(network, translations, source, truth)
            yield {"kind": "law", "source": number, "passes": 0, **_compare_with_truth(truth, joint)}
            continue
        starts = {length: sample_targets(config, length, seed) for length in truth.lengths}
        perfect = {
            length: compute_perfect_distributions(config, translations, targets) * truth.lengths[length]
            for length, targets in starts.items()
        }
        refined = _compute_refiner_distributions(config, network, translations, source, starts, seed)
        for passes, joint in enumerate(refined, start=1):
            row = {"passes": passes, **_compare_with_truth(truth, joint)}
            denoised = {length: found[passes - 1] for length, found in perfect.items()}
            row["perfect_divergence"], row["perfect_variation"] = truth.joint(denoised)
            yield {"kind": "law", "source": number, **row}


def _compare_with_truth(truth: TrueDistribution, joint: Distributions) -> dict[str, float]:
    divergence, variation = truth.joint(joint)
    outside = 1 - sum(float(part.sum()) for part in joint.values())
    return {"divergence": divergence, "variation": variation, "outside": outside}


def compute_perfect_distributions(config: Config, translations: Translations, targets: Tensor) -> Tensor:
    """Compute the exact output distribution of refinement with a perfect denoiser.

    Refinement samples all target tokens in parallel and repeats this. The perfect denoiser makes the best possible
    predictions of the clean tokens.

    Args:
        config: Settings of the run.
        translations: True distribution of the translations, over A tokens.
        targets: Token ids (starts, N) of the initial targets. A token that no translation contains is treated as a
            mask.

    Returns:
        Distributions (passes, A^N) after each pass, averaged over initial targets.
    """
    known = targets[:, :, None] == torch.from_numpy(translations.alphabet)
    perfect = Denoiser(translations, config.correct, config.noise_tokens)
    first = perfect.refined_log_probs(known.int().argmax(2), ~known.any(2)).exp()
    start = parallel_steps.compute_product_distributions(first).mean(0)
    return parallel_steps.compute_refinement_distributions(
        perfect, targets.shape[1], config.passes - 1, start
    )


def sample_targets(config: Config, length: int, seed: int) -> Tensor:
    """Sample the random target tokens from which parallel refinement of a translation starts.

    Args:
        config: Settings with the number of starts and the language.
        length: Number of tokens of a target.
        seed: Seed of the tokens.

    Returns:
        Token ids (starts, length).
    """
    random = generator(seed, "translation dependency", "starts", length)
    return torch.randint(SPECIAL, SPECIAL + config.noise_tokens, (config.starts, length), generator=random)


@cache
def list_short_sources(config: Config) -> list[list[int]]:
    """Return short source sentences whose translations can be enumerated.

    They have at most 3 target tokens per word.

    Args:
        config: Settings with the numbers of sentences and words.

    Returns:
        Token ids of each sentence.
    """
    language = config.language()
    sources = language.sources(50 * config.listed, (config.listed_words,) * 2, seed=0)
    most = 3 * config.listed_words
    return [source for source in sources if len(language.condition(source).alphabet) <= most][: config.listed]


@torch.no_grad()
def _compute_refiner_distributions(
    config: Config,
    network: EncoderDecoder,
    translations: Translations,
    source: Sequence[int],
    starts: dict[int, Tensor],
    seed: int,
) -> Iterator[Distributions]:
    """Yield the joint distribution of length and tokens after each parallel pass of a translation network (refiner).

    It is a mean over initial targets, and the network predicts the distribution of the length. Tokens that no
    translation contains are merged into one.
    """
    refiner, random = Refiner(network), generator(seed, "translation dependency", "other token")
    _, lengths = refiner.condition_each([source])
    model = refiner.condition(source)
    known = torch.from_numpy(translations.alphabet)
    others = torch.tensor(
        [token for token in range(SPECIAL, network.config.vocab_size) if token not in known]
    )
    other = others[torch.randint(len(others), (1,), generator=random)]
    alphabet = torch.cat((known, other))

    def site_distributions(tokens: Tensor) -> Tensor:
        log_probs = model.refined_log_probs(tokens, torch.zeros_like(tokens, dtype=torch.bool))
        inside = log_probs[:, :, known].double().exp()
        return torch.cat((inside, (1 - inside.sum(2, keepdim=True)).clamp_min(0)), 2)

    joint, steps = {}, {}
    for length, targets in starts.items():
        start = parallel_steps.compute_product_distributions(site_distributions(targets)).mean(0)
        joint[length] = start * float(lengths[0, length].exp())
        steps[length] = parallel_steps.ParallelSteps(
            site_distributions(alphabet[enumerate_sequences(len(alphabet), length)])
        )
    for _ in range(config.passes):
        yield {length: _remove_last_token(each, len(alphabet), length) for length, each in joint.items()}
        joint = {length: steps[length](each) for length, each in joint.items()}


def _remove_last_token(distribution: Tensor, vocab: int, length: int) -> Tensor:
    """Return the entries of a distribution (vocab^N,) for sequences without the last token id."""
    return distribution.view((vocab,) * length)[(slice(vocab - 1),) * length].flatten()


@torch.no_grad()
def _compute_twin_distribution(
    network: EncoderDecoder, translations: Translations, source: Sequence[int], truth: TrueDistribution
) -> Distributions:
    """Return the joint distribution of length and tokens of the autoregressive network's output."""
    alphabet, joint = torch.from_numpy(translations.alphabet), {}
    for length in truth.lengths:
        targets = alphabet[enumerate_sequences(len(alphabet), length)].tolist()
        (log_probs,) = CausalTranslator(network).log_probs([source], [targets])
        joint[length] = torch.tensor(log_probs, dtype=torch.float64).exp()
    return joint
