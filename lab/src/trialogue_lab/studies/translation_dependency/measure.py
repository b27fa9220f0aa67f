"""The parts of a run: laws of each sentence, chains beside them, one network each, and a translator of a user's."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.data.parallel import ParallelText
from trialogue.generation.translation.model import TranslationModel
from trialogue_lab.analysis.adjacent_attention import refined_attention
from trialogue_lab.ledger import Part
from trialogue_lab.studies.translation_dependency.attention import attention_rows
from trialogue_lab.studies.translation_dependency.config import ARMS, REAL_TEXT, Config
from trialogue_lab.studies.translation_dependency.exact import chain_rows, sentence_rows
from trialogue_lab.studies.translation_dependency.networks import network_rows


def parts(config: Config) -> list[Part]:
    """What is exact, sentence by sentence, then the networks; the translator that is named comes last."""
    numbered = list(enumerate(config.sentences))
    found = [Part(f"sentence-{number}", partial(sentence_rows, one, config)) for number, one in numbered]
    found += [
        Part(f"chains-{number}", partial(chain_rows, one, config))
        for number, one in numbered
        if one.states <= config.chain_states
    ]
    found += [
        Part(
            f"network-{number}-{seed}",
            partial(network_rows, config, arm, seed),
            columns={"seed": seed, "arm": arm},
        )
        for seed in config.seeds
        for number, arm in enumerate(ARMS)
    ]
    if config.model:
        found.append(Part("real-text", partial(_real_text, config), columns={"arm": REAL_TEXT}))
    return found


def _real_text(config: Config, _: Path) -> Iterator[dict[str, Any]]:
    """Attention of a translator on a text, in the same pass as that of the other networks."""
    model = TranslationModel.open(config.model)
    texts = ParallelText.read(config.text, config.columns).sources[: config.sources]
    sources = [source for source in model.vocabulary.encode(texts) if len(source) <= model.max_length]
    yield from attention_rows(refined_attention(model.refiner(), sources, config.attended_pass))
