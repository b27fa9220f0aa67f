"""Best of n against all tuples of draws and against the closed form."""

from mutants import samplers as mutants
from trialogue.samplers import BestOfN, generate
from trialogue.testing.trees import VIABLE


def first_of_the_greatest(sampler) -> bool:
    """Whether each sample is the first of the greatest of the candidates that its streams draw.

    In distribution it does not matter which of equals is taken, since the draws are exchangeable.
    """
    tree, n = VIABLE[0], 3
    chosen = generate(tree.table(), sampler=sampler(n), verifier=tree.allows, num_samples=40).sequences()
    drawn = generate(tree.table(), num_samples=40 * n).sequences()
    groups = [drawn[start : start + n] for start in range(0, len(drawn), n)]
    return chosen == [max(group, key=tree.allows) for group in groups]


def test_the_first_of_equals_is_taken():
    assert first_of_the_greatest(BestOfN)
    assert not first_of_the_greatest(mutants.LastBestOfN)
