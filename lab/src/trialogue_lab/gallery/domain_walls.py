"""Scene 2 of the gallery: texts from a Potts chain that stores three words, at several temperatures.

The energy of a text is low if it repeats one of the words. A domain wall is a position at which a text switches to
another word, or to another shift of the same word.
"""

from typing import Any

from trialogue.data import PottsChain
from trialogue_lab.gallery.embedding import encode_base_36

PATTERNS = ("fish ", "wren ", "lamb ")
WINDOW = 3
LENGTH = 160
TEMPERATURES = tuple(round(0.1 + 0.025 * step, 3) for step in range(25))
SAMPLES = 24
"""Number of texts at each temperature. The first one is shown letter by letter."""
LETTERS = tuple(sorted({letter for pattern in PATTERNS for letter in pattern}))


def make_chain() -> PottsChain:
    """Return the Potts chain of the scene, a distribution over texts that stores three words.

    The energy of a window of letters is its Hamming distance to the nearest window of a stored word.
    """
    patterns = [[LETTERS.index(letter) for letter in pattern] for pattern in PATTERNS]
    return PottsChain.from_patterns(patterns, window=WINDOW, vocab_size=len(LETTERS))


def make_scene(seed: int = 0) -> dict[str, Any]:
    """Sample texts at every temperature, and return them with exact expectations as JSON values.

    A text follows one of three stored words at each position. A domain wall is a position at which it switches to
    another word, or to another shift of the same word.

    Args:
        seed: Seed of the samples (default: 0).

    Returns:
        Dictionary with the stored words and one entry per temperature: "text" (first sample), "walls" (number of domain
        walls in each sample), "expected" (its exact expectation), "no_walls" (probability of a text without domain
        walls), and "labels". Labels have one base-36 digit per window of each sample, which is word * period + shift.
    """
    potts = make_chain()
    levels = []
    for temperature in TEMPERATURES:
        texts = potts.sample(SAMPLES, LENGTH, temperature, seed=seed)
        levels.append(
            {
                "temperature": temperature,
                "text": "".join(LETTERS[letter] for letter in texts[0].tolist()),
                "labels": encode_base_36(potts.followed(texts)),
                "walls": potts.domain_walls(texts).sum(1).tolist(),
                "expected": potts.expected_domain_walls(LENGTH, temperature),
                "no_walls": potts.no_wall_probability(LENGTH, temperature),
            }
        )
    return {"patterns": list(PATTERNS), "window": WINDOW, "length": LENGTH, "levels": levels}
