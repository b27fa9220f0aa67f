"""Decoding methods of the study: Algorithm 1 with several verifiers and variants, and baselines."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Judging = Literal["none", "trained", "ground truth", "random"]
Extent = Literal["all", "comparisons", "plane"]
"""Group of decoding methods. All repetitions measure the first group, and the first ones the others."""
EXTENTS: tuple[Extent, ...] = get_args(Extent)


@dataclass(frozen=True, kw_only=True)
class DecodingRule:
    """A decoding method for test cases. The default is nucleus sampling at top-p 0.95.

    Algorithm 1 generates text with a verifier. When the verifier rejects a prefix, the last tokens are erased and
    generated again (a backtrack). Block best-of-n samples several candidates of each line and keeps the one that the
    verifier scores highest.

    Args:
        judge: Kind of verifier: "none" (default), "trained" for a trained classifier, "ground truth", or "random".
        quota: Largest number of backtracks per completion. 0 (default) for other methods than Algorithm 1.
        stride: Number of tokens that a backtrack erases.
        argmax_redo: Whether erased tokens are generated greedily the next time.
        released: Whether erased tokens are generated again as in the code that was released with the thesis.
        candidates: Number of candidates of block best-of-n. 0 (default) for other methods.
        threshold: Score of the trained verifier below which a prefix is rejected.
        top_p: Probability mass of nucleus sampling. 0 for greedy decoding.
        temperature: Sampling temperature. 0 for greedy decoding.
        layer: Layer of the language model whose states the trained verifier reads. None for the layer of the
            configuration.
        depth: Number of layers of the trained verifier. None for one.
        out_of_distribution: Whether the tested function has the name of another task.
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
        """Whether the method always chooses the most probable token."""
        return self.top_p == 0 or self.temperature == 0

    @property
    def name(self) -> str:
        """Name of the decoding method in rows and files.

        It lists the differences from nucleus sampling.
        """
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
        """Description of the decoding method for tables and figures."""
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
"""Grid of sampling without a verifier (section 3.2.2.3). Greedy decoding, equal at all temperatures, is left out."""


def make_block_best_of(n: int) -> DecodingRule:
    """Return the method that samples several candidates of each line and keeps the best one.

    The best candidate is the one with the highest score of the verifier.

    Args:
        n: Number of candidates per line. They are sampled at top-p 0.95 and temperature 1.
    """
    return DecodingRule(judge="trained", candidates=n)


def lower_threshold_to_half(decoding: DecodingRule) -> DecodingRule:
    """Return the same decoding method with a rejection threshold of 0.5.

    Args:
        decoding: The method.
    """
    return replace(decoding, threshold=0.5)


def out_of_distribution(decoding: DecodingRule) -> DecodingRule:
    """Return the same decoding method, applied to Python functions that have the name of another task.

    Args:
        decoding: The method.
    """
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
    make_block_best_of(2),
)
"""Decoding methods of Table 3.6 at top-p 0.95 and temperature 1, and of Tables 3.12 and 3.17."""


def list_decodings(extent: Extent, layers: tuple[int, ...], depths: tuple[int, ...]) -> list[DecodingRule]:
    """Return the decoding methods that are measured in one group of repetitions.

    Args:
        extent: Group of methods: "all" for the methods that all repetitions measure, "comparisons", or "plane" for the
            grid of top-p and temperature settings. Every method belongs to one group.
        layers: Layers of the language model whose states other trained verifiers read.
        depths: Numbers of layers (above 1) of other trained verifiers.
    """
    if extent == "all":
        return list(MAIN)
    comparisons = [
        RELEASED,
        *map(make_block_best_of, (4, 8)),
        WIDE_BASELINE,
        HOT_BASELINE,
        *(rule for wide in (WIDE, WIDE_LONG_STRIDE, HOT) for rule in (wide, lower_threshold_to_half(wide))),
        *(replace(TRAINED, layer=layer) for layer in layers),
        *(replace(HIGH, layer=layer) for layer in layers if layer == -1),
        *(replace(TRAINED, depth=depth) for depth in depths),
        *map(out_of_distribution, (BASELINE, TRAINED, HIGH)),
    ]
    if extent == "comparisons":
        return comparisons
    return [rule for rule in PLANE if rule not in (*MAIN, *comparisons)]


def find_extent(decoding: DecodingRule) -> Extent:
    """Return the group of repetitions in which a decoding method is measured.

    Args:
        decoding: The method.

    Returns:
        "all" if all repetitions measure it, "plane" if it belongs to the grid of top-p and temperature settings only,
        and "comparisons" otherwise.
    """
    if decoding in MAIN:
        return "all"
    return "plane" if decoding in PLANE and decoding not in (WIDE_BASELINE, HOT_BASELINE) else "comparisons"
