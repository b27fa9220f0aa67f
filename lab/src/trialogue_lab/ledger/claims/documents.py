"""The documents whose statements the studies test, and identifiers of their statements."""

import re
from collections.abc import Mapping

from trialogue.errors import InputError

DOCUMENTS: Mapping[str, str] = {
    "potts": "Notes on Potts chains: domain walls and the coherence of autoregressive models",
    "clones": "A distributional simplicity bias in the learning dynamics of transformers",
    "type-signature": "Theoretical Limitations of Autoregressive Models",
    "memorization": "Memorization in attention-only transformers",
    "thesis": "Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling",
}
"""Titles of the documents by key. Statement ids begin with the key."""


def check_statement_id(statement_id: str, claim: str) -> None:
    """Raise `InputError` unless `statement_id` has the form "<document>:<identifier>" with a known document.

    Args:
        statement_id: The statement id. An identifier names a printed theorem, figure or table
            ("M-T411", "T-Fig2.5", "Corollary-1"). If part of a statement is tested separately, its identifier adds a
            dot and a name ("M-C411.proof").
        claim: Id of the claim, for the error message.
    """
    document, _, identifier = statement_id.partition(":")
    if document not in DOCUMENTS or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", identifier):
        hint = f'claim {claim}: use "<document>:<identifier>" with a document among {", ".join(DOCUMENTS)}'
        raise InputError("statement_id", statement_id, hint)
