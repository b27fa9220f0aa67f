"""Compiled sweeps of heat bath over many chains of Ising and Potts models, by tables of their conditional
distributions.
"""
