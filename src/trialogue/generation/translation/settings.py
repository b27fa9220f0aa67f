"""What the two commands of translation are asked for: every option is a field here, its help the field's docstring."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from trialogue.data.byte_level_bpe import checked_size
from trialogue.data.parallel.vocabulary import SPECIAL
from trialogue.errors import InputError
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch
from trialogue.validation import Count, Natural, validated


@validated
@dataclass(frozen=True)
class Translating:
    """How lines are translated."""

    model: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder that `trialogue train-translation` wrote."""
    network: Annotated[Literal["refiner", "twin"], arg(metavar="NETWORK")] = "refiner"
    """refiner (in parallel), or twin (token after token)."""
    steps: Annotated[Count, arg(metavar="T")] = 4
    """Steps of refinement, at most."""
    hypotheses: Annotated[int, arg(metavar="N")] = 5
    """Likeliest lengths that are refined; of the twin, beams (1 is greedy)."""
    start: Annotated[Literal["random", "mask"], arg(metavar="START")] = "random"
    """What refinement begins with: random tokens, or mask."""
    keep: Annotated[Literal["stutter", "nothing", "confident"], arg(metavar="WHAT")] = "stutter"
    """What a step leaves: stutter (a token that equals the one before it is not taken), nothing, or confident (the
    schedule of mask-predict, with --start mask)."""
    alpha: Annotated[float, arg(metavar="A")] = 0.6
    """Hypotheses are ranked by log-probability over ((5 + length) / 6)^A."""
    rescore: bool = False
    """Rank what the refiner makes of its lengths by the twin, which reads all of them in one more pass."""
    keep_repeats: bool = False
    """Keep each token that equals the one before it."""
    seed: Annotated[Natural, arg(metavar="N")] = 0
    """What random tokens are drawn from."""

    def __post_init__(self) -> None:
        if self.model is None:
            hint = "name a folder: trialogue train-translation writes one"
            raise InputError("model", None, hint)
        if self.rescore and self.network == "twin":
            raise InputError(
                "rescore", True, "the twin ranks what the refiner writes: leave one of the two out"
            )
        _ = self.beam, self.search

    @property
    def beam(self) -> LengthBeam:
        """How the refiner translates."""
        chain = Refinement(start=self.start, keep=self.keep, steps=self.steps)
        return LengthBeam(self.steps, self.hypotheses, chain, self.alpha, not self.keep_repeats)

    @property
    def search(self) -> BeamSearch:
        """How the twin does."""
        return BeamSearch(self.hypotheses, self.alpha)


@validated
@dataclass(frozen=True)
class Lines:
    """What is read and written, and where it is computed."""

    input: Annotated[Path | None, arg(metavar="FILE")] = None
    """Lines to translate (standard input)."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Where translations go, a line for each (standard output)."""
    json: bool = False
    """An object per line: hypotheses with scores, passes of the decoder, seconds."""
    stream: bool = False
    """Answer each line before the next one is read."""
    truncate: bool = False
    """Cut a line that is too long for the model, which is otherwise refused and leaves an empty line."""
    batch: Annotated[Count, arg(metavar="N")] = 32
    """Lines that are translated together."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """cpu, cuda, cuda:1."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Threads of torch."""

    def __post_init__(self) -> None:
        if self.input is not None and self.out is not None and self.input.resolve() == self.out.resolve():
            raise InputError("out", str(self.out), "it is the file that is read: name another one")


@validated
@dataclass(frozen=True)
class Pairs:
    """What is learned from, what is trained, and where it goes."""

    text: Annotated[Path | None, arg(metavar="FILE.tsv")] = None
    """Pairs, one in a line, columns parted by tabs; with --targets, the sources alone."""
    targets: Annotated[Path | None, arg(metavar="FILE")] = None
    """Their translations, line by line."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder of the model; a training that was cut short goes on from there."""
    columns: Annotated[tuple[int, int], arg(metavar="S T")] = (1, 2)
    """Columns of the source and of the target, counted from 1."""
    networks: Annotated[Literal["both", "refiner", "twin"], arg(metavar="WHICH")] = "both"
    """refiner, twin, or both."""
    distil: bool = False
    """Let the refiner begin with the weights of the twin, and learn what that makes of the sources."""
    vocab: Annotated[int, arg(metavar="N")] = 4000
    """Subwords of both languages together."""
    test: Annotated[Count, arg(metavar="N")] = 1000
    """Pairs that are held out and scored; those that share a sentence stay on one side."""
    tokenize: Annotated[Literal["13a", "intl", "zh", "char"], arg(metavar="HOW")] = "13a"
    """How sacreBLEU parts the targets into words: 13a or intl where spaces do, zh for Chinese, char by characters."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Threads of torch."""

    def __post_init__(self) -> None:
        if self.text is None:
            raise InputError("text", None, "name a table of pairs (`trialogue train-translation --help`)")
        if self.out is None:
            raise InputError("out", None, "name the folder that the model goes to")
        if self.targets is not None and self.columns != (1, 2):
            raise InputError(
                "columns", self.columns, "a file of its own for each language has none: leave it out"
            )
        checked_size(self.vocab, SPECIAL, "vocab")
        if self.distil and self.networks == "refiner":
            raise InputError("networks", self.networks, "distillation takes a twin too: use both")
        if self.distil and self.networks == "twin":
            raise InputError("distil", True, "the twin is who distils: use both networks")
