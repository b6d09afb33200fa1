"""eagle: kernels over batches, as graphs, differentiated as a whole."""

from . import diff, errors, exec, plan
from .errors import Busy
from .graph import Graph
from .plan import auto as deploy

__all__ = ["Busy", "Graph", "deploy", "diff", "errors", "exec", "plan"]
