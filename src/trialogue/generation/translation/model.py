"""Translation model that is stored in a folder: a vocabulary and one or two networks."""

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
from trialogue.models.hub.checkpoint_loading import select_device
from trialogue.models.networks.saved import load_model, save_model
from trialogue.storage import atomic_write, make_folder

VOCABULARY, CARD = "vocabulary.json", "translation.json"
HELD_OUT = ("held-out.sources.txt", "held-out.targets.txt")
"""Files with the held-out sentences, one per line."""
Network = Literal["refiner", "twin"]
NETWORKS: tuple[Network, ...] = ("refiner", "twin")


@dataclass(frozen=True)
class TranslationModel:
    """A subword vocabulary and the translation networks that use it.

    The refiner is a bidirectional network, which revises a complete translation in parallel. The twin is an
    autoregressive network, which generates a translation token by token.

    Args:
        vocabulary: Vocabulary shared by both languages.
        networks: Networks by name ("refiner", "twin"), at least one.
    """

    vocabulary: SubwordVocabulary
    networks: dict[Network, EncoderDecoder]

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a source sentence."""
        return min(network.config.max_length for network in self.networks.values())

    def refiner(self) -> Refiner:
        """Return the bidirectional network, which revises a complete translation in parallel.

        Raises:
            InputError: If the model has no such network.
        """
        return Refiner(self._network("refiner"))

    def twin(self) -> CausalTranslator:
        """Return the autoregressive network, which generates a translation token by token.

        Raises:
            InputError: If the model has no such network.
        """
        return CausalTranslator(self._network("twin"))

    def save(self, folder: str | PathLike[str], card: dict[str, Any]) -> Path:
        """Write the model to a folder.

        Args:
            folder: The folder, which is created if necessary.
            card: JSON values that describe the training. They are written last, so that a folder with a card
                is complete.

        Returns:
            Path of the file with the description.
        """
        target = make_folder(folder)
        self.vocabulary.save(target / VOCABULARY)
        for name, network in self.networks.items():
            save_model(network, _weights(target, name))
        content = {**card, "vocabulary": self.vocabulary.identity, "networks": sorted(self.networks)}
        return atomic_write(target / CARD, json.dumps(content, indent=1))

    @classmethod
    def open(cls, folder: str | PathLike[str], *, device: str = "cpu") -> TranslationModel:
        """Load a saved model.

        Args:
            folder: Folder of the model.
            device: Device of the networks.

        Raises:
            InputError: If the folder contains no model, if a file is damaged, or if the vocabulary belongs to
                another model.
        """
        path = Path(folder)
        try:
            card = json.loads((path / CARD).read_text())
            names = [name for name in NETWORKS if name in card["networks"]]
            identity = card["vocabulary"]
            if not names:
                raise KeyError("networks")
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = f"use a folder written by `trialogue train-translation`: it has no valid {CARD}"
            raise InputError("model", str(folder), hint) from error
        select_device(device)
        vocabulary = SubwordVocabulary.open(path / VOCABULARY, identity)
        networks = {name: load_model(_weights(path, name), EncoderDecoder, device=device) for name in names}
        for name, network in networks.items():
            if network.config.vocab_size != len(vocabulary):
                hint = f"train it again: it has {network.config.vocab_size} tokens and its vocabulary {len(vocabulary)}"
                raise InputError("model", str(_weights(path, name)), hint)
        return cls(vocabulary, networks)

    def _network(self, name: Network) -> EncoderDecoder:
        if name not in self.networks:
            hint = f"use the network of the model ({', '.join(self.networks)}), or train the model with both"
            raise InputError("network", name, hint)
        return self.networks[name]


def require_outside(out: Path, folder: Path) -> None:
    """Check that an output file does not overwrite a file of the model.

    Args:
        out: Output file.
        folder: Folder of the model.

    Raises:
        InputError: If `out` is a file of the model.
    """
    files = (CARD, VOCABULARY, *HELD_OUT, *(_weights(folder, name).name for name in NETWORKS))
    if out.resolve() in [(folder / name).resolve() for name in files]:
        raise InputError("out", str(out), "use another file: this one belongs to the model")


def _weights(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"
