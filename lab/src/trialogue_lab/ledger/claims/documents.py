"""The publications whose statements are tested, and the ids of their statements."""

import difflib
import re
from collections.abc import Mapping

from trialogue.errors import InputError, NotFoundError

DOCUMENTS: Mapping[str, str] = {
    "potts": "Notes on Potts chains: domain walls and the coherence of autoregressive models",
    "clones": "A distributional simplicity bias in the learning dynamics of transformers",
    "type-signature": "Theoretical Limitations of Autoregressive Models",
    "memorization": "Memorization in attention-only transformers",
    "thesis": "Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling",
    "reject-resample-repeat": "Reject, Resample, Repeat: Understanding Parallel Reasoning in Language Model Inference",
    "approximate-reward-models": "On the Power of (Approximate) Reward Models for Inference-Time Scaling",
    "roc-n-reroll": "ROC-n-reroll: How verifier imperfection affects test-time scaling",
    "cars": "Constrained adaptive rejection sampling (arXiv 2510.01902)",
    "asap": "Grammar-aligned decoding (arXiv 2405.21047)",
    "power-sampling": "Reasoning with sampling: your base model is smarter than you think (arXiv 2510.14901)",
    "power-smc": "Power-SMC: low-latency sequence-level power sampling (arXiv 2602.10273)",
    "power-bridge": "Power distribution bridges sampling, self-reward RL and self-distillation (arXiv 2605.04542)",
    "scalable-power": "Scalable power sampling by distribution sharpening (arXiv 2601.21590)",
    "duel": "DUEL: exact likelihood for masked diffusion via deterministic unmasking (arXiv 2603.01367)",
    "optimal-schedules": "Optimal inference schedules for masked diffusion models (arXiv 2511.04647)",
    "fast-dllm": "Fast-dLLM: training-free acceleration of diffusion language models (arXiv 2505.22618)",
    "quality-exploration": "Locally confident, globally stuck: the quality-exploration dilemma (arXiv 2604.00375)",
    "token-ordering": "Train for the worst, plan for the best: token ordering in masked diffusions (arXiv 2502.06768)",
    "confidence-shortcut": "The confidence shortcut: a reasoning failure mode of masked diffusion (arXiv 2605.29123)",
    "remdm": "Remasking discrete diffusion models with inference-time scaling (arXiv 2503.00307)",
}
"""Titles of the publications, by the key with which statement ids begin."""


def find_documents(text: str) -> list[str]:
    """Return the keys of the publications with this key, or with these words in their key or title.

    Args:
        text: A key of `DOCUMENTS`, or "ours" for the questions of this project, or words of a title. Case is ignored.

    Raises:
        InputError: No publication has this key or title.
    """
    wanted = text.strip().lower()
    if wanted in (*DOCUMENTS, "ours"):
        return [wanted]
    found = [key for key, title in DOCUMENTS.items() if wanted and wanted in f"{key}\n{title}".lower()]
    if not found:
        close = difflib.get_close_matches(wanted, [*DOCUMENTS, "ours"], n=2)
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        hint = f"No publication has the key {text!r}, or these words in its title. {hint}"
        raise NotFoundError("source", text, f"{hint}The keys are {', '.join(DOCUMENTS)} and ours.")
    return found


def check_statement_id(statement_id: str, claim: str) -> None:
    """Raise `InputError` unless `statement_id` has the form "<document>:<identifier>".

    Args:
        statement_id: The id. The document is a key of `DOCUMENTS`. The identifier names a printed theorem, figure or
            table ("M-T411", "T-Fig2.5"), with a suffix for a part of it ("M-C411.proof").
        claim: Id of the claim, for the error message.
    """
    document, _, identifier = statement_id.partition(":")
    if document not in DOCUMENTS or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", identifier):
        hint = f'claim {claim}: use "<document>:<identifier>" with a document among {", ".join(DOCUMENTS)}'
        raise InputError("statement_id", statement_id, hint)
