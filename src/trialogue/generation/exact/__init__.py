"""`trialogue distribution`: the exact distribution of what a sampler samples on an oracle that is small enough, and
what it costs.
"""
