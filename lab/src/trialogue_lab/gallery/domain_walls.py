"""Scene 2: texts of a Potts chain that stores three words, and the domain walls between them as it warms up."""

from typing import Any

from trialogue.data import PottsChain
from trialogue_lab.gallery.embedding import in_characters

PATTERNS = ("fish ", "wren ", "lamb ")
WINDOW = 3
LENGTH = 160
TEMPERATURES = tuple(round(0.1 + 0.025 * step, 3) for step in range(25))
SAMPLES = 24
"""Texts that are drawn at each temperature; the first one is shown letter by letter."""
LETTERS = tuple(sorted({letter for pattern in PATTERNS for letter in pattern}))


def chain() -> PottsChain:
    """A window of `WINDOW` letters costs its Hamming distance to the nearest window of a pattern."""
    patterns = [[LETTERS.index(letter) for letter in pattern] for pattern in PATTERNS]
    return PottsChain.from_patterns(patterns, window=WINDOW, vocab_size=len(LETTERS))


def scene(seed: int = 0) -> dict[str, Any]:
    """Exact samples and exact expectations at every temperature.

    `text` is the first sample, `labels` of all of them what their windows follow, a character each (the number in base
    36: pattern * period + phase), `walls` how many domain walls each has; `expected` is their exact expectation and
    `whole` the probability that there is none.
    """
    potts = chain()
    levels = []
    for temperature in TEMPERATURES:
        texts = potts.sample(SAMPLES, LENGTH, temperature, seed=seed)
        levels.append(
            {
                "temperature": temperature,
                "text": "".join(LETTERS[letter] for letter in texts[0].tolist()),
                "labels": in_characters(potts.followed(texts)),
                "walls": potts.domain_walls(texts).sum(1).tolist(),
                "expected": potts.expected_domain_walls(LENGTH, temperature),
                "whole": potts.no_wall_probability(LENGTH, temperature),
            }
        )
    return {"patterns": list(PATTERNS), "window": WINDOW, "length": LENGTH, "levels": levels}
