"""The decodings: Algorithm 1 with its verifiers and ablations, and every baseline."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Judging = Literal["none", "trained", "ground truth", "random"]
Extent = Literal["all", "comparisons", "plane"]
"""Which repetitions draw a decoding: all, or the first of them, as the config counts them."""
EXTENTS: tuple[Extent, ...] = get_args(Extent)


@dataclass(frozen=True, kw_only=True)
class DecodingRule:
    """How completions are drawn; `name` holds what differs from nucleus sampling at top-p 0.95.

    Without `quota` and `candidates` this is ancestral sampling; with `candidates`, block best-of-n by lines. `layer`
    and `depth` are those of the trained verifier, None where they are the config's. `released` redoes as the code does
    that was released with the thesis. `out_of_distribution` names the target function after something that it does not
    do.
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
        """Whether nothing is drawn at random."""
        return self.top_p == 0 or self.temperature == 0

    @property
    def name(self) -> str:
        """A name that may also name a file."""
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
        return "-".join([self.judge.replace(" ", "_"), *(word for word, said in words.items() if said)])


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

TOP_PS = (0.0, 0.7, 0.8, 0.9, 0.95, 1.0)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
PLANE = tuple(DecodingRule(top_p=p, temperature=t) for p in TOP_PS if p > 0 for t in TEMPERATURES)
"""The grid of the baselines (section 3.2.2.3) but greedy decoding, which is one for all temperatures."""


def block_best_of(n: int) -> DecodingRule:
    """Block best-of-n at the baseline's setting."""
    return DecodingRule(judge="trained", candidates=n)


def below_half(decoding: DecodingRule) -> DecodingRule:
    """The same with the threshold 0.5."""
    return replace(decoding, threshold=0.5)


def out_of_distribution(decoding: DecodingRule) -> DecodingRule:
    """The same on functions that are named after something else."""
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
"""Tables 3.6 at one setting, 3.12 and 3.17."""


def decodings_of(extent: Extent, layers: tuple[int, ...], depths: tuple[int, ...]) -> list[DecodingRule]:
    """The decodings of an extent, none of which is in another; `layers` and `depths` are those beside the config's."""
    if extent == "all":
        return list(MAIN)
    comparisons = [
        RELEASED,
        *map(block_best_of, (4, 8)),
        WIDE_BASELINE,
        HOT_BASELINE,
        *(kind for wide in (WIDE, WIDE_LONG_STRIDE, HOT) for kind in (wide, below_half(wide))),
        *(replace(TRAINED, layer=layer) for layer in layers),
        *(replace(HIGH, layer=layer) for layer in layers if layer == -1),
        *(replace(TRAINED, depth=depth) for depth in depths),
        *map(out_of_distribution, (BASELINE, TRAINED, HIGH)),
    ]
    if extent == "comparisons":
        return comparisons
    return [rule for rule in PLANE if rule not in (*MAIN, *comparisons)]


def extent_of(decoding: DecodingRule) -> Extent:
    """The extent whose repetitions draw a decoding."""
    if decoding in MAIN:
        return "all"
    return "plane" if decoding in PLANE and decoding not in (WIDE_BASELINE, HOT_BASELINE) else "comparisons"
