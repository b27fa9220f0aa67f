"""Compiled heat-bath sweeps of many chains, using tables of conditional distributions."""
