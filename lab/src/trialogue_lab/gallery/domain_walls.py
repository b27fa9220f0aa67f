"""Scene 2: texts from a Potts chain that stores three words, at several temperatures.

The chain gives low energy to texts that repeat one of the words. A domain wall is a place at which a text switches to
another word, or to another shift of the same word.
"""

from typing import Any

from trialogue.data import PottsChain
from trialogue_lab.gallery.embedding import in_base_36

PATTERNS = ("fish ", "wren ", "lamb ")
WINDOW = 3
LENGTH = 160
TEMPERATURES = tuple(round(0.1 + 0.025 * step, 3) for step in range(25))
SAMPLES = 24
"""Number of texts at each temperature. The first one is shown letter by letter."""
LETTERS = tuple(sorted({letter for pattern in PATTERNS for letter in pattern}))


def chain() -> PottsChain:
    """Return the Potts chain of the scene.

    The energy of a window of letters is its Hamming distance to the nearest window of a stored word.
    """
    patterns = [[LETTERS.index(letter) for letter in pattern] for pattern in PATTERNS]
    return PottsChain.from_patterns(patterns, window=WINDOW, vocab_size=len(LETTERS))


def scene(seed: int = 0) -> dict[str, Any]:
    """Return samples and exact expectations at every temperature, for the page.

    Returns:
        For each temperature, `text` is the first sample. `labels` has a base-36 digit for each window of each sample:
        pattern * period + phase of the nearest stored word. `walls` has the number of switches between words in each
        sample, `expected` its exact expectation, and `no_walls` the probability of a text without switches.
    """
    potts = chain()
    levels = []
    for temperature in TEMPERATURES:
        texts = potts.sample(SAMPLES, LENGTH, temperature, seed=seed)
        levels.append(
            {
                "temperature": temperature,
                "text": "".join(LETTERS[letter] for letter in texts[0].tolist()),
                "labels": in_base_36(potts.followed(texts)),
                "walls": potts.domain_walls(texts).sum(1).tolist(),
                "expected": potts.expected_domain_walls(LENGTH, temperature),
                "no_walls": potts.no_wall_probability(LENGTH, temperature),
            }
        )
    return {"patterns": list(PATTERNS), "window": WINDOW, "length": LENGTH, "levels": levels}
