"""Tokenizers that are read from a `tokenizer.json` without transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

_CLASSES = ("TokenizersBackend", "PreTrainedTokenizerFast")
"""Classes of transformers that use a `tokenizer.json` as it is."""
_NAMED = {"bos_token", "eos_token", "pad_token", "unk_token"}
_UNUSED = {
    "added_tokens_decoder", "backend", "chat_template", "clean_up_tokenization_spaces", "is_local",
    "local_files_only", "model_input_names", "model_max_length", "tokenizer_class",
}  # fmt: skip
"""Entries that do not affect the tokens of a text."""
_LEGACY_FILES = ("special_tokens_map.json", "added_tokens.json")
"""Files that transformers reads if the configuration does not state the added tokens."""
_CORRECTED = ("mistral", "qwen2")
"""Architectures for which transformers corrects or replaces some tokenizers."""


class TokenizerFile:
    """Tokenizer from a `tokenizer.json`, with the part of the interface of transformers that `Tokenization` requires.

    Args:
        backend: Tokenizer.
        special: Ids of the beginning and the end of a sequence, by the names of transformers, where they exist.
        load: Function that returns the tokenizer of transformers.
    """

    is_fast = True
    all_special_ids = ()  # All of them are marked in `added_tokens_decoder`.

    def __init__(self, backend: Tokenizer, special: dict[str, int | None], load: Callable[[], Any]) -> None:
        self.backend_tokenizer, self.load = backend, load
        self.bos_token_id, self.eos_token_id = special.get("bos_token"), special.get("eos_token")
        self.added_tokens_decoder = backend.get_added_tokens_decoder()

    @classmethod
    def open(cls, folder: Path, architecture: str, load: Callable[[], Any]) -> TokenizerFile | None:
        """Return the tokenizer in a folder, or None if it requires transformers.

        Args:
            folder: Folder in the format of Hugging Face.
            architecture: Entry `model_type` of the configuration of the model.
            load: Function that returns the tokenizer of transformers.
        """
        try:
            stated = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
            backend = _read_tokenizer(folder / "tokenizer.json")
            added = {token.content: token for token in backend.get_added_tokens_decoder().values()}
            named = {name: _content(stated[name]) for name in _NAMED if stated.get(name) is not None}
            is_plain = (
                architecture not in _CORRECTED
                and stated["tokenizer_class"] in _CLASSES
                and not stated.keys() - _NAMED - _UNUSED
                and all(added[content].special for content in named.values())
                and _has_added_tokens(folder, stated, backend)
                and not (backend.truncation or backend.padding)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if not is_plain:
            return None
        special = {name: backend.token_to_id(content) for name, content in named.items()}
        return cls(backend, special, load)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> dict[str, list[int]]:
        """Return the token ids of a text under "input_ids"."""
        return {"input_ids": self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}


def _read_tokenizer(file: Path) -> Tokenizer:
    """Read a `tokenizer.json`.

    Raises:
        ValueError: If the file cannot be read.
    """
    try:
        return Tokenizer.from_file(str(file))
    # The library raises nothing more specific.
    except Exception as error:
        raise ValueError(str(error)) from error


def _content(token: Any) -> str:
    """Return the text of a token that is stated as text or as a mapping."""
    return str(token["content"] if isinstance(token, dict) else token)


def _has_added_tokens(folder: Path, stated: dict[str, Any], backend: Tokenizer) -> bool:
    """Return whether a `tokenizer.json` lists all added tokens.

    Args:
        folder: Folder with the files of the tokenizer.
        stated: Entries of the file `tokenizer_config.json`.
        backend: Tokenizer of the file `tokenizer.json`.

    Returns:
        False if another file adds tokens, or describes one of them differently.
    """
    if "added_tokens_decoder" not in stated:
        return not any((folder / name).is_file() for name in _LEGACY_FILES)
    fields = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    return {
        int(token): {name: entry[name] for name in fields}
        for token, entry in stated["added_tokens_decoder"].items()
    } == {
        token: {name: getattr(entry, name) for name in fields}
        for token, entry in backend.get_added_tokens_decoder().items()
    }
