"""Tasks of a run: exact distributions, Markov chains, trained networks, and a translator of the user."""

from functools import partial
from pathlib import Path

from trialogue.data.parallel import ParallelText
from trialogue.generation.translation.model import TranslationModel
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.translation_dependency.attention import attention_rows
from trialogue_lab.studies.translation_dependency.config import ARMS, REAL_TEXT, Config
from trialogue_lab.studies.translation_dependency.exact import chain_rows, sentence_rows
from trialogue_lab.studies.translation_dependency.networks import network_rows


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run.

    Args:
        config: Settings of the run.

    Returns:
        One task per source sentence for exact distributions, one per sentence for Markov chains, one per network and
        training seed, and one for the user's translation model, if there is one.
    """
    numbered = list(enumerate(config.sentences))
    tasks = [Part(f"sentence-{number}", partial(sentence_rows, one, config)) for number, one in numbered]
    tasks += [
        Part(f"chains-{number}", partial(chain_rows, one, config))
        for number, one in numbered
        if one.vocab_size**one.longest <= config.chain_states
    ]
    tasks += [
        Part(
            f"network-{number}-{seed}",
            partial(network_rows, config, arm, seed),
            columns={"seed": seed, "arm": arm},
        )
        for seed in config.seeds
        for number, arm in enumerate(ARMS)
    ]
    if config.model:
        tasks.append(Part("real-text", partial(_real_text, config), columns={"arm": REAL_TEXT}))
    return tasks


def _real_text(config: Config, _: Path) -> MeasuredRows:
    """Measure the attention of the user's translator in the same pass as the networks'."""
    model = TranslationModel.open(config.model)
    texts = ParallelText.read(config.text, config.columns).sources[: config.sources]
    sources = [source for source in model.vocabulary.encode(texts) if len(source) <= model.max_length]
    yield from attention_rows(refined_attention(model.refiner(), sources, config.attended_pass))
