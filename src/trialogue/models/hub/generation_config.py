"""Generation settings that the publisher of a model recommends, and the tokens that end a sequence."""

from typing import Any

# These settings do not change the distribution of samples.
_IGNORED = ("bos_token_id", "pad_token_id", "transformers_version", "use_cache", "return_dict_in_generate")
_IGNORED_PREFIXES = ("_", "output_", "cache_")


def recommended_settings(model: Any) -> dict[str, Any]:
    """Return the generation settings of a transformers model that differ from the defaults of transformers."""
    config = getattr(model, "generation_config", None)
    stated: dict[str, Any] = {} if config is None else config.to_diff_dict()
    return {
        name: value
        for name, value in stated.items()
        if name not in _IGNORED and not name.startswith(_IGNORED_PREFIXES)
    }


def end_tokens(model: Any, eos: int | None, vocab_size: int) -> tuple[int | None, tuple[int, ...]]:
    """Return the end-of-sequence token of a transformers model, and further tokens that end a sequence.

    Args:
        model: Model with a generation config.
        eos: End-of-sequence token of the tokenizer, if any. It takes precedence over the generation config.
        vocab_size: Number of tokens.
    """
    stated = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [] if stated is None else [stated] if isinstance(stated, int) else list(stated)
    # Some configurations use an invalid id if the model has no such token.
    ends = [end for end in ends if 0 <= end < vocab_size]
    first = eos if eos is not None else next(iter(ends), None)
    return first, tuple(sorted(set(ends) - {first}))
