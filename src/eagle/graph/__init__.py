"""Graphs of kernels."""

from .graph import Graph

__all__ = ["Graph"]
