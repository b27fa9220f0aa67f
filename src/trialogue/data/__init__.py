"""Structured distributions whose truth is known exactly."""

from trialogue.data.dyck import Dyck, DyckErrors
from trialogue.data.dyck_kernels import DyckError
from trialogue.data.ising import Ising
from trialogue.data.table import Table

__all__ = ["Dyck", "DyckError", "DyckErrors", "Ising", "Table"]
