"""The verifiers of a decoding: trained, random, or one that knows the truth."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from trialogue.inference import ProbeVerifier, RandomVerifier, Threshold
from trialogue.oracles import Decoding, Verifier
from trialogue.studies.test_cases.config import Config
from trialogue.studies.test_cases.decodings import DecodingRule
from trialogue.studies.test_cases.examples import GroundTruth, Kind
from trialogue.studies.test_cases.models import TextOracle, trained_verifier

Prompt = tuple[int, ...]


class ByPrompt(Verifier):
    """Judges the sequences of each prompt by that prompt's own verifier, so that repetitions share a batch.

    `verifiers` maps the tokens of every prompt to its verifier; all of them read the same hidden states.
    """

    def __init__(self, verifiers: Mapping[Prompt, Verifier]) -> None:
        self._verifiers = verifiers
        self.most = max(verifier.most for verifier in verifiers.values())
        self.layers: Sequence[int] = next(iter(verifiers.values())).layers

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        values = torch.empty(len(rows), dtype=torch.float64)
        places: dict[Verifier, list[int]] = {}
        starts = decoding.start[rows].tolist()
        for place, (tokens, start) in enumerate(zip(decoding.tokens[rows].tolist(), starts, strict=True)):
            places.setdefault(self._verifiers[tuple(tokens[:start])], []).append(place)
        for verifier, own in places.items():
            values[own] = verifier.values(decoding, rows[own]).double()
        return values


def judge_of(
    config: Config,
    decoding: DecodingRule,
    oracle: TextOracle,
    repetitions: Mapping[Prompt, int],
    names: Mapping[Prompt, str],
    artifacts: Path,
) -> Verifier | None:
    """What `decoding` asks, where `repetitions` and `names` say whose each prompt is and which function it is about."""
    if decoding.judge == "trained":
        verifiers = {
            seed: _trained(config, decoding, seed, artifacts) for seed in dict.fromkeys(repetitions.values())
        }
        return ByPrompt({prompt: verifiers[seed] for prompt, seed in repetitions.items()})
    if decoding.judge == "random":
        return Threshold(
            RandomVerifier(), decoding.threshold
        )  # of whole prefixes, so that each prompt has its own
    if decoding.judge == "ground truth":
        return GroundTruth(names, oracle.tokenization, config.cases, oracle.eos)
    return None


def _trained(config: Config, decoding: DecodingRule, repetition: int, artifacts: Path) -> Verifier:
    kind: Kind = "block" if decoding.candidates else "token"
    layer = config.layer if decoding.layer is None else decoding.layer
    trained = trained_verifier(config, repetition, kind, layer, decoding.depth or 1, artifacts)
    probe = ProbeVerifier(trained.probe, layer)
    return probe if decoding.candidates else Threshold(probe, decoding.threshold)
