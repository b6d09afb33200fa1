"""Gradients through graphs and runs."""

from .gradients import Gradients, Report
from .base import Record
from .phase import phase
from .reverse import Reverse, reverse

__all__ = ["Gradients", "Record", "Report", "Reverse", "phase", "reverse"]
