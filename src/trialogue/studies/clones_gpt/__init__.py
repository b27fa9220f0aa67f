"""Does a causal language model, too, learn low-order interactions of its text before high-order ones?

Figure 5 of 'A distributional simplicity bias in the learning dynamics of transformers': a decoder of GPT-Neo's kind
learns to predict the next token of a text, and is followed on clones that keep interactions of growing order. The
clones are those of the study `clones`, drawn anew, with all that is said there of networks, chains and the text.
"""

from trialogue.ledger import Study
from trialogue.studies.clones_gpt.claims import CLAIMS, NUMBERS
from trialogue.studies.clones_gpt.config import PRESETS
from trialogue.studies.clones_gpt.measure import parts
from trialogue.studies.clones_gpt.pages import FIGURES, TABLES

STUDY = Study(
    module=__name__,
    source="A distributional simplicity bias in the learning dynamics of transformers: Figure 5",
    presets=PRESETS,
    parts=parts,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
    numbers=NUMBERS,
)
