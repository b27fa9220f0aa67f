"""Unmasking samplers by name, with settings that can be written as JSON."""

from collections.abc import Callable
from functools import partial
from typing import Any

from trialogue.errors import InputError
from trialogue.samplers.unmasking.ordered import DrawThenSelect, Ordered
from trialogue.samplers.unmasking.orders import Confidence, Entropy, LeftToRight, Margin, Order, Random
from trialogue.samplers.unmasking.sizes import Factor, Fixed, RandomSizes, Schedule, Size, Threshold

_SIZES: dict[str, Callable[[Any], Size]] = {
    "positions": Fixed,
    "linear": partial(Schedule, "linear"),
    "cosine": partial(Schedule, "cosine"),
    "random": RandomSizes,
    "threshold": Threshold,
    "factor": Factor,
}
"""Sizes by the name of their only setting."""


def _take_size(settings: dict[str, Any]) -> Size:
    """Remove the size from the settings of a sampler, and return it."""
    given = [name for name in _SIZES if name in settings]
    if len(given) > 1:
        raise InputError(given[1], settings[given[1]], f"leave it out, because {given[0]} defines the size")
    return _SIZES[given[0]](settings.pop(given[0])) if given else Fixed()


def _ordered(order: type[Order], **settings: Any) -> Ordered:
    own = {name: settings.pop(name) for name in ("ties",) if name in settings}
    return Ordered(order(**own), _take_size(settings), **settings)


def random(**settings: Any) -> Ordered:
    """Reveal uniformly random positions.

    Args:
        **settings: At most one size: `positions` per pass, number of passes with "linear", "cosine" or "random" sizes,
            confidence "threshold", or "factor" (default: one position). Also `temperature`, `top_p` and `blocks`.
    """
    return _ordered(Random, **settings)


def left_to_right(**settings: Any) -> Ordered:
    """Reveal the first masked positions. The settings are those of `random`."""
    return _ordered(LeftToRight, **settings)


def confidence(**settings: Any) -> Ordered:
    """Reveal the positions with the most probable tokens. The settings are those of `random`, and `ties`."""
    return _ordered(Confidence, **settings)


def entropy(**settings: Any) -> Ordered:
    """Reveal the positions of the lowest entropy. The settings are those of `random`, and `ties`."""
    return _ordered(Entropy, **settings)


def margin(**settings: Any) -> Ordered:
    """Reveal the positions of the largest margin. The settings are those of `random`, and `ties`."""
    return _ordered(Margin, **settings)


def draw_then_select(**settings: Any) -> DrawThenSelect:
    """Draw all tokens and keep the most probable ones. The settings are those of `random`, and `ties`."""
    size = _take_size(settings)
    return DrawThenSelect(size, **settings)
