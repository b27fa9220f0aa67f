"""The oracle of a model that `generate` is called on, made once and kept beside the model.

Making one takes a second: passes that try the model's cache, and tables of the tokenizer. The model holds it, and it
goes with the model; copies of the model and files of it leave it out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from trialogue.models.hub.pretrained import PretrainedOracle

_PLACE = "_trialogue_oracles"


class _Kept(dict[Any, Any]):
    """The latest oracle, by what it was made with."""

    def __deepcopy__(self, memo: object) -> "_Kept":
        return _Kept()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return dict, ()


def oracle_of(model: Any, tokenizer: Any, *, recompute: bool, ends: list[int]) -> PretrainedOracle:
    """The oracle of `model` with `tokenizer`, sequences of which end at one of `ends`, if there are any.

    An end beyond the vocabulary, such as -1, is a way to say never. Raises `InputError` as `PretrainedOracle` does.
    """
    places = vars(model)
    kept = places.get(_PLACE)
    if not isinstance(kept, _Kept):
        kept = places[_PLACE] = _Kept()
    head = model.get_output_embeddings()
    # It holds tokenizer and head, so that no other thing has their ids.
    key = (
        id(tokenizer),
        id(head),
        len(getattr(head, "weight", ())),
        str(model.device),
        model.dtype,
        recompute,
    )
    made = kept.get(key)
    if made is None:
        made = tokenizer, PretrainedOracle(model, tokenizer, recompute=recompute)
        kept.clear()
        kept[key] = made
    # A call has ends of its own.
    oracle = copy(made[1])
    ends = [end for end in ends if 0 <= end < oracle.vocab_size]
    stated = oracle.tokenization.eos
    oracle.eos = stated if stated in ends else next(iter(ends), None)
    oracle.other_ends = tuple(sorted({end for end in ends if end != oracle.eos}))
    return oracle


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """`model` without dropout and the like; then each of its modules is in training again where it was."""
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in trained:
            module.training = True
