"""eagle: kernels over batches, as graphs, differentiated as a whole."""

from . import calls as calls  # it runs the calls of kernels
from . import diff, errors, exec, plan
from ._native import set_threads
from .errors import Busy
from .graph import Graph
from .plan import auto as deploy
from .runs import Status, resume, simulate, simulation, until_done

__all__ = [
    "Busy",
    "Graph",
    "Status",
    "deploy",
    "diff",
    "errors",
    "exec",
    "plan",
    "resume",
    "set_threads",
    "simulate",
    "simulation",
    "until_done",
]
