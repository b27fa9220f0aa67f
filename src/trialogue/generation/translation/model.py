"""A translation model on disk: a vocabulary, a refiner, its twin, or both, in one folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from trialogue.data.parallel.vocabulary import SubwordVocabulary
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.models.hub.checkpoint_loading import usable_device
from trialogue.models.networks.saved import load_model, save_model
from trialogue.storage import atomic_write, make_folder

VOCABULARY, CARD = "vocabulary.json", "translation.json"
HELD_OUT = ("held-out.sources.txt", "held-out.targets.txt")
"""The pairs that it was not trained on, line by line: `trialogue translate` reads the sources."""
Network = Literal["refiner", "twin"]
NETWORKS: tuple[Network, ...] = ("refiner", "twin")


@dataclass(frozen=True)
class TranslationModel:
    """A vocabulary and the networks that were trained with it, at least one of them."""

    vocabulary: SubwordVocabulary
    networks: dict[Network, EncoderDecoder]

    @property
    def max_length(self) -> int:
        """Tokens of the longest source that its networks read."""
        return min(network.config.max_length for network in self.networks.values())

    def refiner(self) -> Refiner:
        """The bidirectional network; raises `InputError` where the model has none."""
        return Refiner(self._network("refiner"))

    def twin(self) -> CausalTranslator:
        """The autoregressive network; raises `InputError` where the model has none."""
        return CausalTranslator(self._network("twin"))

    def save(self, folder: str | PathLike[str], card: dict[str, Any]) -> Path:
        """Write it to `folder`, with a `card` that says what it is trained on; the card comes last."""
        made = make_folder(folder)
        self.vocabulary.save(made / VOCABULARY)
        for name, network in self.networks.items():
            save_model(network, _weights(made, name))
        held = {**card, "vocabulary": self.vocabulary.identity, "networks": sorted(self.networks)}
        return atomic_write(made / CARD, json.dumps(held, indent=1))

    @classmethod
    def open(cls, folder: str | PathLike[str], *, device: str = "cpu") -> TranslationModel:
        """The model that was saved in `folder`.

        Raises `InputError` where there is none, for a damaged file, and for a vocabulary of another model.
        """
        path = Path(folder)
        try:
            card = json.loads((path / CARD).read_text())
            names = [name for name in NETWORKS if name in card["networks"]]
            identity = card["vocabulary"]
            if not names:
                raise KeyError("networks")
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = f"it holds no {CARD} that `trialogue train-translation` wrote: name such a folder"
            raise InputError("model", str(folder), hint) from error
        usable_device(device)
        vocabulary = SubwordVocabulary.open(path / VOCABULARY, identity)
        networks = {name: load_model(_weights(path, name), EncoderDecoder, device=device) for name in names}
        for name, network in networks.items():
            if network.config.vocab_size != len(vocabulary):
                hint = f"it has {network.config.vocab_size} tokens and its vocabulary {len(vocabulary)}: train it anew"
                raise InputError("model", str(_weights(path, name)), hint)
        return cls(vocabulary, networks)

    def _network(self, name: Network) -> EncoderDecoder:
        if name not in self.networks:
            hint = f"the model has a {' and a '.join(self.networks)}: ask for that, or train it with both"
            raise InputError("network", name, hint)
        return self.networks[name]


def require_outside(out: Path, folder: Path) -> None:
    """Raise `InputError` where the file `out`, which is to be written, is one of the model that lies in `folder`."""
    own = (CARD, VOCABULARY, *HELD_OUT, *(_weights(folder, name).name for name in NETWORKS))
    if out.resolve() in [(folder / name).resolve() for name in own]:
        raise InputError("out", str(out), "it is a file of the model: name another one")


def _weights(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"
