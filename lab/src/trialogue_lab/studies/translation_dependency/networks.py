"""Networks that learn the made-up language: how they translate it, and their laws where these can be listed."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from trialogue.generation.translation.scores import quality, stutter
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.training.recipes import Recipe, trained
from trialogue.training.translation.recipes import TranslationTraining, encoded_pairs
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.studies.translation_dependency.attention import attention_rows
from trialogue_lab.studies.translation_dependency.config import DETERMINISTIC, ONE_STAGE, TWIN, Config
from trialogue_lab.studies.translation_dependency.exact import Truth
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser
from trialogue_lab.studies.translation_dependency.language import SPECIAL, Translations
from trialogue_lab.studies.translation_dependency.parallel_steps import (
    ParallelSteps,
    product_laws,
    refinement_laws,
)

Rows = Iterator[dict[str, Any]]
Tokens = list[list[int]]
KEPT: tuple[Literal["nothing", "stutter"], ...] = ("nothing", "stutter")
"""What a pass leaves as it was: nothing, or tokens that would repeat the one before."""


def recipe(config: Config, arm: str, seed: int) -> Recipe[EncoderDecoder]:
    """How the network `arm` is trained: on translations of one lexicon, drawn from `seed`."""
    language = config.language(1 if arm == DETERMINISTIC else 2)
    sources = language.sources(config.pairs, config.source_lengths, seed=seed)
    pairs = encoded_pairs(sources, language.translate(sources, seed=seed), config.longest)
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


def network_rows(config: Config, arm: str, seed: int, artifacts: Path) -> Rows:
    """Train one network, translate with it, list its laws, and look at how it attends."""
    network = trained(recipe(config, arm, seed), artifacts).network
    sources, *_ = _tested(config, seed)
    if arm == TWIN:
        outputs = [found.best for found in BeamSearch().translate(CausalTranslator(network), sources)]
        yield {"kind": "quality", "keep": KEPT[0], "passes": 0, **_judged(config, seed, outputs)}
        yield from _listed(config, network, seed, _twin_laws)
        return
    refiner = Refiner(network)
    for keep in KEPT:
        for passes in config.tested_passes:
            # The likeliest length, refined by argmax.
            beam = LengthBeam(steps=passes, hypotheses=1, chain=Refinement(keep=keep), drop_repeats=False)
            outputs = [found.best for found in beam.translate(refiner, sources, seed=seed)]
            yield {"kind": "quality", "keep": keep, "passes": passes, **_judged(config, seed, outputs)}
    yield from _listed(config, network, seed, _refiner_laws)
    yield from attention_rows(refined_attention(refiner, sources, config.attended_pass, seed))


@cache
def _tested(config: Config, seed: int) -> tuple[Tokens, Tokens, list[Translations]]:
    """Sources to translate, a translation of each, and the laws that say what a translation is."""
    language = config.language()
    sources = language.sources(config.sources, config.test_lengths, seed=seed + 1_000_000)
    references = language.translate(sources, seed=seed + 1_000_000)
    return sources, references, [language.condition(source, slips=0.0) for source in sources]


def _judged(config: Config, seed: int, outputs: Tokens) -> dict[str, float]:
    """BLEU and stutter beside one drawn translation each, and the share of outputs that are translations."""
    _, references, laws = _tested(config, seed)
    # Token ids as words.
    texts, told = ([" ".join(f"w{token}" for token in row) for row in rows] for rows in (outputs, references))
    valid = [law.log_prob(output) > -torch.inf for law, output in zip(laws, outputs, strict=True)]
    return {
        "bleu": quality(texts, told).bleu,
        "stutter": stutter(texts, told).rate,
        "valid": sum(valid) / len(valid),
    }


def _listed(config: Config, network: EncoderDecoder, seed: int, laws_of: Any) -> Rows:
    """How far the network's laws of whole translations are from the truth, and how far those of perfect answers are."""
    language = config.language()
    for number, source in enumerate(listed_sources(config)):
        law = language.condition(source)
        truth = Truth(law, language.condition(source, slips=0.0), config.listed_words * 2)
        starts = {length: random_targets(config, length, seed) for length in truth.lengths}
        exact = {length: perfect_laws(config, law, targets) for length, targets in starts.items()}
        for passes, laws in laws_of(config, network, law, source, truth, seed):
            divergence, variation = truth.joint(laws)
            told = {"passes": passes, "divergence": divergence, "variation": variation}
            told["outside"] = 1 - sum(float(part.sum()) for part in laws.values())
            if passes:
                least = {length: truth.lengths[length] * found[passes - 1] for length, found in exact.items()}
                told["perfect_divergence"], told["perfect_variation"] = truth.joint(least)
            yield {"kind": "law", "source": number, **told}


def perfect_laws(config: Config, law: Translations, targets: Tensor) -> Tensor:
    """Laws (passes, A^N) after each pass of a perfect denoiser from `targets` (rows, N), their mean.

    A token that no translation has is known to be noise, and so says as much as a mask.
    """
    known = targets[:, :, None] == torch.from_numpy(law.alphabet)
    perfect = Denoiser(law, config.correct, config.among)
    answers = perfect.refined_log_probs(known.int().argmax(2), ~known.any(2))
    return refinement_laws(perfect, targets.shape[1], config.passes - 1, product_laws(answers.exp()).mean(0))


def random_targets(config: Config, length: int, seed: int) -> Tensor:
    """Targets (starts, length) of random tokens of the language, from which a network refines."""
    draws = generator(seed, "translation dependency", "starts", length)
    return torch.randint(SPECIAL, SPECIAL + config.among, (config.starts, length), generator=draws)


@cache
def listed_sources(config: Config) -> list[list[int]]:
    """Sentences of so few words that their translations can be listed, with alphabets of at most 6 tokens."""
    language = config.language()
    drawn = language.sources(50 * config.listed, (config.listed_words,) * 2, seed=0)
    most = 3 * config.listed_words
    return [source for source in drawn if len(language.condition(source).alphabet) <= most][: config.listed]


@torch.no_grad()
def _refiner_laws(
    config: Config, network: EncoderDecoder, law: Translations, source: Sequence[int], truth: Truth, seed: int
) -> Iterator[tuple[int, dict[int, Tensor]]]:
    """Laws q(N, x) by length N after each pass, tokens drawn and none kept, from random pieces.

    Of the random start the mean over `config.starts` of them is taken. Lengths are the network's own. All tokens that
    no translation has count as one, for which the network is shown one of them.
    """
    refiner, places = Refiner(network), generator(seed, "translation dependency", "other token")
    _, lengths = refiner.condition_each([source])
    model = refiner.condition(source)
    known = torch.from_numpy(law.alphabet)
    others = torch.tensor(
        [token for token in range(SPECIAL, network.config.vocab_size) if token not in known]
    )
    other = others[torch.randint(len(others), (1,), generator=places)]
    alphabet = torch.cat((known, other))

    def sites(tokens: Tensor) -> Tensor:
        answers = model.refined_log_probs(tokens, torch.zeros_like(tokens, dtype=torch.bool))
        found = answers[:, :, known].double().exp()
        return torch.cat((found, (1 - found.sum(2, keepdim=True)).clamp_min(0)), 2)

    laws, steps = {}, {}
    for length in truth.lengths:
        start = product_laws(sites(random_targets(config, length, seed))).mean(0)
        laws[length] = start * float(lengths[0, length].exp())
        steps[length] = ParallelSteps(sites(alphabet[whole_sequences(len(alphabet), length)]))
    for passes in range(1, config.passes + 1):
        yield passes, {length: _without_last(found, len(alphabet), length) for length, found in laws.items()}
        laws = {length: steps[length](found) for length, found in laws.items()}


def _without_last(law: Tensor, vocab: int, length: int) -> Tensor:
    """What a law (vocab^N,) gives the sequences without the last token ((vocab - 1)^N,)."""
    return law.view((vocab,) * length)[(slice(vocab - 1),) * length].flatten()


@torch.no_grad()
def _twin_laws(
    config: Config, network: EncoderDecoder, law: Translations, source: Sequence[int], truth: Truth, seed: int
) -> Iterator[tuple[int, dict[int, Tensor]]]:
    """The law q(N, x) by length N of what the twin writes, which takes no passes of refinement."""
    del config, seed
    alphabet, laws = torch.from_numpy(law.alphabet), {}
    for length in truth.lengths:
        texts = alphabet[whole_sequences(len(alphabet), length)].tolist()
        (log_probs,) = CausalTranslator(network).log_probs([source], [texts])
        laws[length] = torch.tensor(log_probs, dtype=torch.float64).exp()
    yield 0, laws
