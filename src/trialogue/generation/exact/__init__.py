"""`trialogue law`: the exact law of what a walk samples on an oracle that is small enough, and what it costs."""
