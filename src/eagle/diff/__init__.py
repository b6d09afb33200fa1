"""Gradients through graphs and runs."""

from .base import Record
from .gradients import Gradients, Report
from .phase import phase
from .reverse import Reverse, reverse

from ..runs.tangents import forward, hvp  # isort: skip - runs import the records above

__all__ = ["Gradients", "Record", "Report", "Reverse", "forward", "hvp", "phase", "reverse"]
