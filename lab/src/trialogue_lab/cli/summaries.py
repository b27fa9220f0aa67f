"""Write the stored summaries of the ledger: `python -m trialogue_lab.cli.summaries`."""

from trialogue_lab import studies
from trialogue_lab.ledger.entries import ledger
from trialogue_lab.ledger.stored import COMMITTED, store_summaries

if __name__ == "__main__":
    print(store_summaries(ledger(studies.importable(print), COMMITTED)))
