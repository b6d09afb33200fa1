"""Runs that end sample by sample."""

from .options import Status
from .result import Result
from .runner import Runner, until_done
from .saved import resume
from .simulation import Simulation, simulate, simulation

__all__ = ["Result", "Runner", "Simulation", "Status", "resume", "simulate", "simulation", "until_done"]
