"""What the publisher of a model says of how to draw from it."""

from typing import Any

# Which tokens begin and pad, how much is kept and what is returned change no sample.
_NO_MATTER = ("bos_token_id", "pad_token_id", "transformers_version", "use_cache", "return_dict_in_generate")
_NO_MATTER_BEGINNINGS = ("_", "output_", "cache_")


def stated_settings(model: Any) -> dict[str, Any]:
    """The settings of the generation config of a `model` of transformers that differ from the library's defaults."""
    config = getattr(model, "generation_config", None)
    stated: dict[str, Any] = {} if config is None else config.to_diff_dict()
    return {
        name: value
        for name, value in stated.items()
        if name not in _NO_MATTER and not name.startswith(_NO_MATTER_BEGINNINGS)
    }
