"""Fast Gibbs sampling of many chains at once (heat bath), with precomputed tables of conditional distributions."""
