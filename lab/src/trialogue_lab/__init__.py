"""The laboratory of trialogue: studies of published results, the ledger of their claims, and the theory behind them."""

__version__ = "0.1.0"
