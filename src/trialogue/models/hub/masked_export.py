"""Export of a trained `MaskedTransformer` as a checkpoint that `inspect` and `load_pretrained_masked` can load."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from trialogue.errors import InputError
from trialogue.models.hub.gpt2_export import make_tokenizer
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.saved import WEIGHTS, save_model
from trialogue.storage import make_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_START, _MASK = "<|startoftext|>", "[MASK]"


def save_masked(
    model: MaskedTransformer, tokens: Sequence[str] | Tokenizer, folder: str | PathLike[str]
) -> Path:
    """Write a masked transformer and a tokenizer, for `trialogue inspect` and `load_pretrained_masked`.

    Only this package can load the checkpoint. In texts, "[MASK]" is the masked token.

    Args:
        model: Masked network.
        tokens: Text of each data token, for example "()[]" for the tokens 0 to 3. Or a tokenizer of these tokens and
            of the EOS token, which comes last.
        folder: Folder to write. Existing files of a checkpoint are replaced.

    Returns:
        Path of the folder.

    Raises:
        InputError: If the number of tokens differs from that of the network, or if the folder cannot be written.

    Example:
        >>> from trialogue.models import MaskedTransformer, Transformer, TransformerConfig, save_masked
        >>> network = Transformer(TransformerConfig(vocab_size=2, causal=False))
        >>> save_masked(MaskedTransformer(network), "ab", "ab-model")  # doctest: +SKIP
    """
    from transformers import PreTrainedTokenizerFast

    from trialogue.models.hub.masked_checkpoint import MaskedConfig

    network, fields = model.model, dataclasses.asdict(model.model.config)
    tokenizer = make_tokenizer(tokens, network)
    tokenizer.add_special_tokens([_START, _MASK])
    if tokenizer.token_to_id(_MASK) != model.mask:
        hint = f"leave out the tokens {_START!r} and {_MASK!r}, which are added"
        raise InputError("tokens", _MASK, hint)
    where, learned = make_folder(Path(folder)), network.config.positions == "learned"
    length = {"max_position_embeddings": network.config.max_length} if learned else {}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=_START,
        eos_token=tokenizer.id_to_token(network.eos),
        mask_token=_MASK,
    ).save_pretrained(where)
    save_model(network, where / WEIGHTS)
    MaskedConfig(
        fields, architectures=["TrialogueForMaskedLM"], vocab_size=model.vocab_size, **length
    ).save_pretrained(where)
    return where
