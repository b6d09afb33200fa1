"""The kinds of node a graph is made of, one file each."""

from .launch import LaunchNode
from .node import Node
from .phase import PhaseNode

__all__ = ["LaunchNode", "Node", "PhaseNode"]
