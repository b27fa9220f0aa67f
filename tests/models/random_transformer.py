"""Small transformers whose random weights are large enough for attention to matter."""

import torch

from trialogue.models import Transformer, TransformerConfig
from trialogue.randomness import generator


def small(seed: int = 0, **fields: object) -> Transformer:
    shape: dict[str, object] = {
        "vocab_size": 3, "layers": 2, "heads": 2, "width": 8, "mlp_width": 16, "max_length": 10,
    }  # fmt: skip
    model = Transformer(TransformerConfig(**(shape | fields)), seed)  # type: ignore[arg-type]
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator(seed, "test", index)), alpha=0.5)
    return model.eval()
