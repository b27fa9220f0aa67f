"""Windows that follow a pattern, drawn at random: an error of one line, or what a slow loop gives."""

import itertools
import math

import numpy as np
import torch
from hypothesis import strategies as st

from fuzzing.spoiling import INDEX_FAULTS, Draw, answered, cases
from trialogue.data.potts.patterns import StoredPatterns
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival


def survival(distribution: torch.Tensor, steps: int) -> list[float]:
    """Probabilities that windows of three follow the pattern 0, 1, in whatever phase, from windows listed."""
    stored = StoredPatterns([[0, 1], [1, 1]], 3, 2)
    alive, curve = {(0, 1, 0): 1.0}, [1.0]
    for step in range(1, steps + 1):
        labels, after = stored.window_labels(step).tolist(), {}
        for (window, chance), token in itertools.product(alive.items(), (0, 1)):
            longer = (*window[1:], token)
            if labels[longer[0] * 4 + longer[1] * 2 + longer[2]] == 0:
                context = int("0" + "".join(map(str, window)), 2) % len(distribution)
                after[longer] = after.get(longer, 0.0) + chance * math.exp(
                    float(distribution[context, token])
                )
        alive = after
        curve.append(sum(alive.values()))
    return curve


@cases(
    (*INDEX_FAULTS, "nan", "unnormalised"),
    st.integers(-1, 5),
    st.integers(0, 4),
    st.sampled_from([None, 2, 3, 3.0]),
)
def test_survival_of_a_pattern(draw: Draw, steps: int, width: int, prompt: object) -> None:
    survivors = PatternSurvival([[0, 1], [1, 1]], 3, 0, 2)
    distribution = draw.floats((2**width, 2)).log_softmax(1)
    changes = {"nan": distribution * math.nan, "unnormalised": distribution + 0.1}
    distribution = draw.reshaped(changes.get(draw.wrong, distribution))
    curve = answered(lambda: survivors.curve(distribution, steps, prompt=prompt))
    right = steps >= 0 and width <= 3 and prompt in (None, 3) and not isinstance(prompt, float)
    if draw.wrong in ("nothing", "strided", "float64") or not right:
        assert (curve is not None) == right
    if curve is None:
        return
    assert curve.shape == (steps + 1,)
    assert np.abs(curve - survival(distribution.double(), steps)).max() < 1e-9
    rate = answered(lambda: survivors.decay_rate(distribution, tolerance=1e-6))
    assert rate is None or rate.rate >= 0
