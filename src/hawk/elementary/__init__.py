"""Elementary functions over abstract lanes, at most 1 ulp from the exact value."""

from .accuracy import MAX_ULP
from .lanes import Lanes
from .numpy_lanes import NumpyLanes
from .table import FUNCTIONS

__all__ = ["FUNCTIONS", "MAX_ULP", "Lanes", "NumpyLanes"]
