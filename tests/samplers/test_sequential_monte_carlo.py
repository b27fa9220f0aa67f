"""Sequential Monte Carlo is properly weighted: E[exp(log_weight) 1(output = x)] = p(x) V(x), exactly."""

import torch

from trialogue.randomness import Streams
from trialogue.samplers import SequentialMonteCarlo


def test_systematic_resampling_gives_each_particle_its_share_to_within_one():
    weights = torch.tensor([[0.5, 0.25, 0.2, 0.05], [0.0, 0.7, 0.3, 0.0]], dtype=torch.float64)
    streams = Streams(1, torch.arange(8))
    for _ in range(200):
        rows = torch.arange(8).view(2, 4)
        sampler = SequentialMonteCarlo(4, resampling="systematic")
        ancestors = sampler._ancestors(weights.log(), rows, streams.choose)
        for share, chosen in zip(4 * weights, ancestors, strict=True):
            counts = torch.bincount(chosen, minlength=4)
            assert bool(((counts - share).abs() < 1).all())
