"""The kinds of node a graph is made of, one file each."""

from .launch import LaunchNode
from .node import Node

__all__ = ["LaunchNode", "Node"]
