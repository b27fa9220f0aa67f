"""Published accuracies of the document's experiments."""

from typing import NamedTuple

from trialogue_lab.studies.memorization_train.measure import MLP, PER_HEAD, SHARED

EXPERIMENTS = {
    "heads": ("Experiment 1", "against heads, d = d_h"),
    "head-width": ("Experiment 2", "against d_h, one map shared by all heads"),
    "width": ("Experiment 3", "against d, one map shared by all heads"),
    "mlp": ("Experiment 5", "of 70 tokens, attention and MLP"),
    "two-dimensions": ("Experiment 6", "in two dimensions"),
}
"""Place in the document and description of the networks, by experiment."""


class PublishedAccuracy(NamedTuple):
    """A network and its published accuracy.

    Attributes:
        form: "per-head" for values per head, "shared" for one value map for all heads, or "MLP".
        width: Embedding width.
        head_width: Width of a head.
        heads: Number of heads. For a network with an MLP, the number of heads of the attention-only network of as many
            parameters.
        accuracy: Published accuracy.
    """

    form: str
    width: int
    head_width: int
    heads: int
    accuracy: float


_HEADS = (1, 6, 11, 16, 21, 26, 31)
_BY_HEADS = {
    5: (0.074, 0.119, 0.158, 0.192, 0.225, 0.257, 0.294),
    10: (0.130, 0.324, 0.506, 0.685, 0.861, 0.963, 0.997),
    13: (0.163, 0.482, 0.774, 0.988, 1.0),
}
_BY_HEAD_WIDTH = (0.081, 0.110, 0.155, 0.209, 0.288, 0.357, 0.453, 0.546, 0.639, 0.804)
_BY_WIDTH = (0.264, 0.362, 0.460, 0.578, 0.697, 0.809, 0.777, 0.789, 0.786, 0.812, 0.814)
_ATTENTION = (0.068, 0.151, 0.230, 0.301, 0.389, 0.490, 0.594)
_MLP = (0.070, 0.236, 0.374, 0.498, 0.578, 0.590, 0.693)
_IN_TWO_DIMENSIONS = (0.330, 0.497, 0.633, 0.734, 0.857, 0.858)

# The published networks with d_h = d have no shared map.
POINTS: dict[str, tuple[PublishedAccuracy, ...]] = {
    "heads": tuple(
        PublishedAccuracy(PER_HEAD, width, width, heads, accuracy)
        for width, accuracies in _BY_HEADS.items()
        for heads, accuracy in zip(_HEADS, accuracies, strict=False)
    ),
    "head-width": tuple(
        PublishedAccuracy(PER_HEAD if wide == 10 else SHARED, 10, wide, 20, accuracy)
        for wide, accuracy in enumerate(_BY_HEAD_WIDTH, 1)
    ),
    "width": tuple(
        PublishedAccuracy(SHARED, width, 10, 20, accuracy)
        for width, accuracy in enumerate(_BY_WIDTH, 5)
        if width != 10
    ),
    "mlp": tuple(
        PublishedAccuracy(form, 10, 10, heads, accuracy)
        for form, accuracies in ((PER_HEAD, _ATTENTION), (MLP, _MLP))
        for heads, accuracy in zip(_HEADS, accuracies, strict=True)
        if form == PER_HEAD or heads > 1
    ),
    "two-dimensions": tuple(
        PublishedAccuracy(PER_HEAD, 2, 2, heads, accuracy)
        for heads, accuracy in zip((1, 5, 9, 13, 17, 21), _IN_TWO_DIMENSIONS, strict=True)
    ),
}
"""Published networks by experiment.

For d = d_h = 10 and H = 20 the document has two accuracies, .804 in the curve over d_h and .809 in the curve over d.
`head-width` has the first one.
"""
