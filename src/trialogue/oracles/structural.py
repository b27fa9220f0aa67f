"""Conversion of objects with matching methods to sequence models and Markov chains."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles.whole import Chain, Energy, Joint, Masked, SequenceModel
from trialogue.randomness import Choose

_ROLES: dict[str, type[SequenceModel]] = {"log_probs": Masked, "energy": Energy, "draw_block": Joint}
_STATED = (
    "vocab_size",
    "sites",
    "device",
    *_ROLES,
    "site_log_probs",
    "refined_log_probs",
    "free",
    "site_logits",
    "token_logits",
    "site_log_weights",
    "block_log_weights",
)


def as_model(model: object) -> SequenceModel:
    """Convert an object with matching methods to a `SequenceModel`.

    Args:
        model: A `SequenceModel`, or an object with `vocab_size` and at least one of the methods `log_probs`, `energy`
            and `draw_block`. Missing attributes have the defaults of `Masked`, `Energy` and `Joint`.

    Raises:
        InputError: If the object has none of these methods, or no `vocab_size`.
    """
    if isinstance(model, SequenceModel):
        return model
    roles = tuple(role for method, role in _ROLES.items() if hasattr(model, method))
    if not roles or not hasattr(model, "vocab_size"):
        hint = "give a masked model or an energy (see trialogue.oracles)"
        raise InputError("model", type(model).__name__, hint)
    adapted = _adapter(type(model).__name__, roles)()
    for name in _STATED:
        if hasattr(model, name):
            setattr(adapted, name, getattr(model, name))
    return adapted


@lru_cache(maxsize=64)
def _adapter(name: str, roles: tuple[type[SequenceModel], ...]) -> Callable[[], SequenceModel]:
    """Return a class that derives from `roles`, and whose abstract methods the caller sets on the instances."""
    return type(name, roles, dict.fromkeys(_ROLES))


class _DuckChain(Chain[Any]):
    """Adapter that makes an object with the methods `init` and `step` a `Chain`."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self.heat_bath = hasattr(chain, "heat_bath") and bool(chain.heat_bath)  # type: ignore[misc]

    def init(self, model: Any, tokens: Tensor) -> Any:
        return self._chain.init(model, tokens)

    def step(self, model: Any, state: Any, choose: Choose) -> Any:
        return self._chain.step(model, state, choose)

    def energies(self, state: Any) -> Tensor | None:
        return self._chain.energies(state) if hasattr(self._chain, "energies") else None


def as_chain(chain: object) -> Chain[Any]:
    """Convert an object with matching methods to a `Chain`.

    Args:
        chain: A `Chain`, or an object with the methods `init` and `step`.

    Raises:
        InputError: If the object has other methods or is a class.
    """
    if isinstance(chain, Chain):
        return chain
    if isinstance(chain, type):
        raise InputError("chain", chain.__name__, f"give an instance: {chain.__name__}()")
    if not all(hasattr(chain, name) for name in ("init", "step")):
        raise InputError(
            "chain", chain, "give a chain, for example Gibbs(), or an object with the methods init and step"
        )
    return _DuckChain(chain)
