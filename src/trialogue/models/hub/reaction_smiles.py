"""Conversion of the masked language model in the package `rxnmapper` to the format of transformers.

RXNMapper (Schwaller et al. 2021, Extraction of organic chemistry grammar from unsupervised learning of chemical
reactions) is an ALBERT model over tokens of reaction SMILES. Its pickled weights are loaded with `weights_only=True`,
and its tokenizer is rebuilt with the `tokenizers` library.
"""

from pathlib import Path
from typing import Any

SMILES = (
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)
"""Regular expression for a token of a SMILES string, from the tokenizer of the package."""


def smiles_tokenizer(vocabulary: Path) -> Any:
    """Create a fast tokenizer of SMILES, which adds [CLS] and [SEP] to a text.

    Args:
        vocabulary: Text file with one token per line.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokens = vocabulary.read_text(encoding="utf-8").splitlines()
    ids = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(SMILES), behavior="removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")]
    )
    tokenizer.decoder = decoders.Fuse()
    names = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{role}_token": token for role, token in names.items()}
    )


def convert(source: Path, folder: Path) -> None:
    """Convert a model and its tokenizer to safetensors.

    Args:
        source: Folder with config.json, pytorch_model.bin and vocab.txt.
        folder: Folder that is written.
    """
    import torch
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_pretrained(
        source, dtype=torch.float32, use_safetensors=False, weights_only=True, local_files_only=True
    )
    tokenizer = smiles_tokenizer(source / "vocab.txt")
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
