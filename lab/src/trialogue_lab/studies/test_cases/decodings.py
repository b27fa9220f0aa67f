"""Decodings of the study: Algorithm 1 with its verifiers and ablations, and every baseline."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Judging = Literal["none", "trained", "ground truth", "random"]
Extent = Literal["all", "comparisons", "plane"]
"""Repetitions that measure a decoding: all of them, or as many as the field of the configuration says."""
EXTENTS: tuple[Extent, ...] = get_args(Extent)


@dataclass(frozen=True, kw_only=True)
class DecodingRule:
    """A way to generate completions. The default is nucleus sampling at top-p 0.95.

    Args:
        judge: Verifier (default: none).
        quota: Largest number of backtracks per completion. 0 for a decoding other than Algorithm 1.
        stride: Number of tokens that a backtrack erases.
        argmax_redo: Whether erased tokens are redone greedily.
        released: Whether tokens are redone as in the code that was released with the thesis.
        candidates: Number of candidates of block best-of-n, whose blocks are lines. 0 for other decodings.
        threshold: Score of the trained verifier below which a prefix is rejected.
        top_p: Probability mass of nucleus sampling. 0 for greedy decoding.
        temperature: Temperature. 0 for greedy decoding.
        layer: Layer of the trained verifier. None for the layer of the configuration.
        depth: Number of layers of the trained verifier. None for one.
        out_of_distribution: Whether the target function has the name of another task.
    """

    judge: Judging = "none"
    quota: int = 0
    stride: int = 0
    argmax_redo: bool = True
    released: bool = False
    candidates: int = 0
    threshold: float = 0.1
    top_p: float = 0.95
    temperature: float = 1.0
    layer: int | None = None
    depth: int | None = None
    out_of_distribution: bool = False

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is always chosen."""
        return self.top_p == 0 or self.temperature == 0

    @property
    def name(self) -> str:
        """Name of the decoding in rows and files. It lists the differences from nucleus sampling."""
        words = {
            f"Q{self.quota}-B{self.stride}": self.quota,
            f"below-{self.threshold}": self.judge == "trained" and self.quota,
            "no-argmax": not self.argmax_redo,
            "released": self.released,
            f"block-best-of-{self.candidates}": self.candidates,
            f"top_p-{self.top_p}": self.top_p != 0.95,
            f"T-{self.temperature}": self.temperature != 1,
            f"layer-{self.layer}": self.layer is not None,
            f"depth-{self.depth}": self.depth is not None,
            "ood": self.out_of_distribution,
        }
        return "-".join([self.judge.replace(" ", "_"), *(word for word, applies in words.items() if applies)])

    @property
    def label(self) -> str:
        """Description of the decoding for tables and figures."""
        words = {
            f"block best-of-{self.candidates}": self.candidates,
            "greedy": self.greedy,
            "no verifier": self.judge == "none" and not self.greedy,
            f"{self.judge}, Q = {self.quota}, B = {self.stride}": self.quota,
            f"below {self.threshold}": self.judge == "trained" and self.quota,
            "no greedy redo": not self.argmax_redo,
            "as released": self.released,
            f"top-p {self.top_p}": self.top_p != 0.95 and not self.greedy,
            f"T = {self.temperature}": self.temperature != 1,
            "misleading names": self.out_of_distribution,
        }
        return ", ".join(word for word, applies in words.items() if applies)


BASELINE = DecodingRule()
GREEDY = DecodingRule(top_p=0.0)
TRAINED = DecodingRule(judge="trained", quota=4, stride=4)
HIGH = replace(TRAINED, threshold=0.5)
LARGE_QUOTA = replace(TRAINED, quota=10)
LONG_STRIDE = replace(TRAINED, stride=10)
GROUND_TRUTH = replace(TRAINED, judge="ground truth")
GROUND_TRUTH_LARGE_QUOTA = replace(GROUND_TRUTH, quota=10)
RANDOM = replace(TRAINED, judge="random")
NO_ARGMAX = replace(TRAINED, argmax_redo=False)
HIGH_NO_ARGMAX = replace(HIGH, argmax_redo=False)
RELEASED = replace(TRAINED, released=True)
WIDE_BASELINE = DecodingRule(top_p=1.0)
WIDE = replace(TRAINED, top_p=1.0)
WIDE_LONG_STRIDE = replace(WIDE, stride=10)
HOT_BASELINE = replace(WIDE_BASELINE, temperature=1.2)
HOT = replace(WIDE, temperature=1.2)

TOP_PS = (0.7, 0.8, 0.9, 0.95, 1.0)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
PLANE = tuple(DecodingRule(top_p=top_p, temperature=t) for top_p in TOP_PS for t in TEMPERATURES)
"""Grid of the baselines (section 3.2.2.3) without greedy decoding, which is the same at all temperatures."""


def block_best_of(n: int) -> DecodingRule:
    """Return block best-of-n with `n` candidates per line, and with the top-p and temperature of nucleus sampling."""
    return DecodingRule(judge="trained", candidates=n)


def below_half(decoding: DecodingRule) -> DecodingRule:
    """Return the same decoding, in which the verifier rejects prefixes with a score below 0.5."""
    return replace(decoding, threshold=0.5)


def out_of_distribution(decoding: DecodingRule) -> DecodingRule:
    """Return the same decoding, applied to functions that have the name of another task."""
    return replace(decoding, out_of_distribution=True)


MAIN = (
    BASELINE,
    GREEDY,
    TRAINED,
    HIGH,
    GROUND_TRUTH,
    RANDOM,
    NO_ARGMAX,
    HIGH_NO_ARGMAX,
    LARGE_QUOTA,
    GROUND_TRUTH_LARGE_QUOTA,
    LONG_STRIDE,
    block_best_of(2),
)
"""Decodings of Table 3.6 at one top-p and temperature, and of Tables 3.12 and 3.17."""


def decodings_of(extent: Extent, layers: tuple[int, ...], depths: tuple[int, ...]) -> list[DecodingRule]:
    """Return the decodings that are measured by the same repetitions. Every decoding belongs to one group.

    Args:
        extent: Group: "all" for decodings that all repetitions measure, or "comparisons" or "plane".
        layers: Layers of the trained verifier, other than the layer of the configuration.
        depths: Depths of the trained verifier above 1.
    """
    if extent == "all":
        return list(MAIN)
    comparisons = [
        RELEASED,
        *map(block_best_of, (4, 8)),
        WIDE_BASELINE,
        HOT_BASELINE,
        *(rule for wide in (WIDE, WIDE_LONG_STRIDE, HOT) for rule in (wide, below_half(wide))),
        *(replace(TRAINED, layer=layer) for layer in layers),
        *(replace(HIGH, layer=layer) for layer in layers if layer == -1),
        *(replace(TRAINED, depth=depth) for depth in depths),
        *map(out_of_distribution, (BASELINE, TRAINED, HIGH)),
    ]
    if extent == "comparisons":
        return comparisons
    return [rule for rule in PLANE if rule not in (*MAIN, *comparisons)]


def extent_of(decoding: DecodingRule) -> Extent:
    """Return which repetitions measure a decoding: "all", or those for "comparisons" or for the "plane" of settings."""
    if decoding in MAIN:
        return "all"
    return "plane" if decoding in PLANE and decoding not in (WIDE_BASELINE, HOT_BASELINE) else "comparisons"
