"""Elementary functions over abstract lanes, at most 1 ulp from the exact value."""

from .lanes import Lanes
from .numpy_lanes import NumpyLanes
from .table import FUNCTIONS

__all__ = ["FUNCTIONS", "Lanes", "NumpyLanes"]
