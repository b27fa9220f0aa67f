"""Tasks of a run: exact distributions, Markov chains, trained networks, and a translator of the user."""

from functools import partial
from pathlib import Path

from trialogue.data.parallel import ParallelText
from trialogue.generation.translation.model import TranslationModel
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.translation_dependency.attention import summarize_attention
from trialogue_lab.studies.translation_dependency.config import ARMS, REAL_TEXT, Config
from trialogue_lab.studies.translation_dependency.exact import measure_chains, measure_sentence
from trialogue_lab.studies.translation_dependency.networks import measure_network


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which test parallel translation if target tokens are dependent.

    Args:
        config: Settings of the run.

    Returns:
        One task per source sentence computes exact output distributions, and one per sentence compares Markov chains
        with refinement. One task per network and training seed trains the network on an artificial language. If there
        is a translation model of the user, one task measures its attention.
    """
    numbered = list(enumerate(config.sentences))
    tasks = [Part(f"sentence-{number}", partial(measure_sentence, one, config)) for number, one in numbered]
    tasks += [
        Part(f"chains-{number}", partial(measure_chains, one, config))
        for number, one in numbered
        if one.vocab_size**one.longest <= config.chain_states
    ]
    tasks += [
        Part(
            f"network-{number}-{seed}",
            partial(measure_network, config, arm, seed),
            columns={"seed": seed, "arm": arm},
        )
        for seed in config.seeds
        for number, arm in enumerate(ARMS)
    ]
    if config.model:
        tasks.append(Part("real-text", partial(_measure_user_translator, config), columns={"arm": REAL_TEXT}))
    return tasks


def _measure_user_translator(config: Config, _: Path) -> MeasuredRows:
    """Measure the attention of the user's translator in the same pass as the networks'."""
    model = TranslationModel.open(config.model)
    texts = ParallelText.read(config.text, config.columns).sources[: config.sources]
    sources = [source for source in model.vocabulary.encode(texts) if len(source) <= model.max_length]
    yield from summarize_attention(refined_attention(model.refiner(), sources, config.attended_pass))
