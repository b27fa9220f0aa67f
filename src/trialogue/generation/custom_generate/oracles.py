"""Conversion of a transformers model to an oracle, which is created once and stored with the model.

Creating an oracle takes about a second, because it tests the model's cache and builds tokenizer tables. The oracle is
not copied or saved with the model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from trialogue.models.hub.pretrained import PretrainedOracle

_ATTRIBUTE = "_trialogue_oracles"


class _OracleCache(dict[Any, Any]):
    """The most recently created oracle, by the arguments from which it was created."""

    def __deepcopy__(self, memo: object) -> "_OracleCache":
        return _OracleCache()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return dict, ()


def get_oracle(model: Any, tokenizer: Any, *, recompute: bool, ends: list[int]) -> PretrainedOracle:
    """Return an object that computes next-token distributions of a transformers model (an oracle).

    The oracle of an earlier call is reused if the arguments are the same.

    Args:
        model: Causal language model of transformers.
        tokenizer: Tokenizer of the model.
        recompute: Whether to evaluate every prefix without a cache.
        ends: Token ids that end a sequence. Ids outside the vocabulary, for example -1, are ignored.

    Raises:
        InputError: As for `PretrainedOracle`.
    """
    attributes = vars(model)
    cache = attributes.get(_ATTRIBUTE)
    if not isinstance(cache, _OracleCache):
        cache = attributes[_ATTRIBUTE] = _OracleCache()
    head = model.get_output_embeddings()
    # The stored oracle holds references to tokenizer and head, so that their ids stay unique.
    key = (
        id(tokenizer),
        id(head),
        len(getattr(head, "weight", ())),
        str(model.device),
        model.dtype,
        recompute,
    )
    entry = cache.get(key)
    if entry is None:
        entry = tokenizer, PretrainedOracle(model, tokenizer, recompute=recompute)
        cache.clear()
        cache[key] = entry
    # The copy receives the end tokens of this call.
    oracle = copy(entry[1])
    ends = [end for end in ends if 0 <= end < oracle.vocab_size]
    default_end = oracle.tokenization.eos
    oracle.eos = default_end if default_end in ends else next(iter(ends), None)
    oracle.other_ends = tuple(sorted({end for end in ends if end != oracle.eos}))
    return oracle


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Switch a PyTorch model to evaluation mode, and restore the mode of each module on exit.

    Args:
        model: The model. Its modules may be in training mode.
    """
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in trained:
            module.training = True
