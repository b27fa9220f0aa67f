"""Options of `trialogue translate` and `trialogue train-translation`. Each docstring is the help text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from trialogue.data.byte_level_bpe import require_bpe_size
from trialogue.data.parallel.vocabulary import SPECIAL
from trialogue.errors import InputError
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.validation import Count, Natural, validated


@validated
@dataclass(frozen=True)
class TranslationSettings:
    """Options of `trialogue translate` on the model and on decoding.

    The refiner is a bidirectional network, which revises a complete translation in parallel. The twin is an
    autoregressive network, which generates a translation token by token.
    """

    model: Annotated[Path | None, arg(metavar="DIR")] = None
    """Load the model from this folder, written by `trialogue train-translation`."""
    network: Annotated[Literal["refiner", "twin"], arg(metavar="NETWORK")] = "refiner"
    """Translate by parallel refinement (refiner) or token by token (twin)."""
    steps: Annotated[Count, arg(metavar="T")] = 4
    """Refine for at most this many steps."""
    hypotheses: Annotated[int, arg(metavar="N")] = 5
    """Refine this many of the most probable lengths. For the twin: number of beams (1 means greedy)."""
    start: Annotated[Literal["random", "mask"], arg(metavar="START")] = "random"
    """Start refinement from random tokens or from masks."""
    keep: Annotated[Literal["stutter", "nothing", "confident"], arg(metavar="WHAT")] = "stutter"
    """Tokens that a step keeps: all but repetitions of the token before (stutter), none (nothing), or the most
    confident ones (confident, the mask-predict schedule; needs --start mask)."""
    alpha: Annotated[float, arg(metavar="A")] = 0.6
    """Rank hypotheses by log-probability divided by ((5 + length) / 6)^A."""
    rescore: bool = False
    """Rank the refiner's hypotheses by the twin, in one more forward pass."""
    keep_repeats: bool = False
    """Keep repeated adjacent tokens."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """Seed of the random tokens."""

    def __post_init__(self) -> None:
        if self.model is None:
            hint = "use a folder written by `trialogue train-translation`"
            raise InputError("model", None, hint)
        if self.rescore and self.network == "twin":
            raise InputError(
                "rescore",
                True,
                "leave it out or use --network refiner: it applies to hypotheses of the refiner",
            )
        _ = self.beam, self.search

    @property
    def beam(self) -> LengthBeam:
        """Decoder of the refinement model with these options."""
        chain = Refinement(start=self.start, keep=self.keep, steps=self.steps)
        return LengthBeam(self.steps, self.hypotheses, chain, self.alpha, not self.keep_repeats)

    @property
    def search(self) -> BeamSearch:
        """Decoder of the autoregressive model with these options."""
        return BeamSearch(self.hypotheses, self.alpha)


@validated
@dataclass(frozen=True)
class LineSettings:
    """Options of `trialogue translate` on input, output and hardware."""

    input: Annotated[Path | None, arg(metavar="FILE")] = None
    """Translate the lines of this file (default: standard input)."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write one translation per line to this file (default: standard output)."""
    json: bool = False
    """Write one JSON object per line: hypotheses with scores, decoder passes, seconds."""
    stream: bool = False
    """Translate each line before reading the next one."""
    truncate: bool = False
    """Truncate lines that are too long for the model (default: write an empty line and an error)."""
    batch: Annotated[Count, arg(metavar="N")] = 32
    """Translate this many lines at once."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Compute on this device: cpu, cuda or cuda:1."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads."""

    def __post_init__(self) -> None:
        if self.input is not None and self.out is not None and self.input.resolve() == self.out.resolve():
            raise InputError("out", str(self.out), "use another file: this one is the input")


@validated
@dataclass(frozen=True)
class PairSettings:
    """Options of `trialogue train-translation` on the sentence pairs and the networks.

    The refiner is a bidirectional network, which revises a complete translation in parallel. The twin is an
    autoregressive network, which generates a translation token by token.
    """

    text: Annotated[Path | None, arg(metavar="FILE.tsv")] = None
    """Train on these sentence pairs, one per line with tab-separated columns. With --targets: the source sentences."""
    targets: Annotated[Path | None, arg(metavar="FILE")] = None
    """Read the translations from this file, line by line."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Write the model to this folder. An interrupted training resumes from it."""
    columns: Annotated[tuple[int, int], arg(metavar="S T")] = (1, 2)
    """Columns of source and target in --text, counted from 1."""
    networks: Annotated[Literal["both", "refiner", "twin"], arg(metavar="WHICH")] = "both"
    """Train the refiner, the twin, or both."""
    distil: bool = False
    """Initialise the refiner with the twin's weights, and train it on the twin's translations."""
    vocab: Annotated[int, arg(metavar="N")] = 4000
    """Vocabulary size of the subwords shared by both languages."""
    test: Annotated[Count, arg(metavar="N")] = 1000
    """Hold out this many pairs for the BLEU score. Pairs that share a sentence stay in one split."""
    tokenize: Annotated[Literal["13a", "intl", "zh", "char"], arg(metavar="HOW")] = "13a"
    """Tokenize targets for sacreBLEU: 13a or intl for languages with spaces, zh for Chinese, char by character."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError(
                "text", None, "use a file of sentence pairs (see `trialogue train-translation --help`)"
            )
        if self.out is None:
            raise InputError("out", None, "use a folder for the model")
        if self.targets is not None and self.columns != (1, 2):
            raise InputError("columns", self.columns, "leave it out: it does not apply with --targets")
        require_bpe_size(self.vocab, SPECIAL, "vocab")
        if self.distil and self.networks == "refiner":
            raise InputError("networks", self.networks, "use both: distillation also requires the twin")
        if self.distil and self.networks == "twin":
            raise InputError("distil", True, "use both networks: distillation also requires the refiner")
