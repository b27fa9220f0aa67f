"""Generation settings that the publisher of a model recommends."""

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
