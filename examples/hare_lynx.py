"""Hares and lynxes: fit a model to 21 years of fur trade, from thousands of starting points at once.

The Hudson's Bay Company counted the pelts it bought. Between 1900 and 1920 hare and lynx went round almost
twice, the predator a year or two behind its prey. The equations of Lotka (1925) and Volterra (1926),

    d hare / dt = (alpha - beta lynx) hare        d lynx / dt = (delta hare - gamma) lynx,

have four rates; with the two populations of 1900 that makes six unknowns. We look for those with the least sum of
squared log errors, the maximum likelihood when counts are off by a factor (log-normal errors). That sum has many
local minima, so we start from thousands of guesses: each is one sample of the batch, and one reverse of the graph
gives the gradients of them all.

Data: thousands of pelts, as tabulated by P. Howard, "Modeling Basics" (2009), after C. Elton and M. Nicholson, J.
Animal Ecology 11 (1942) 215, and C. G. Hewitt, "The Conservation of the Wild Life of Canada" (1921). The fit to
compare with: B. Carpenter, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan" (2018), means of
the posterior under weak priors, with log-normal errors of standard deviation 0.25.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import eagle
import eagle.testing
import hawk
from hawk import Mutable, Param, Scalar, Vector
from hawk import math as hm

YEARS = np.arange(1900, 1921)
HARE = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1,
        40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
LYNX = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4,
        8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
RATES = "alpha", "beta", "gamma", "delta"
UNKNOWNS = (*RATES, "hare 1900", "lynx 1900")
PUBLISHED = np.array([0.55, 0.028, 0.80, 0.024, 33.96, 5.95])
GUESSES = np.array([(0.1, 2), (0.005, 0.1), (0.1, 2), (0.005, 0.1), (15, 60), (2, 12)])  # where starts are drawn from

STEPS = 10  # Runge-Kutta steps a year
DT = 1 / STEPS


# The model, for one sample


def growth(state, alpha, beta, gamma, delta):
    hare, lynx = state
    return hm.vec((alpha - beta * lynx) * hare, (delta * hare - gamma) * lynx)


@hawk.kernel
def one_year(state: Vector[2], alpha: Scalar, beta: Scalar, gamma: Scalar, delta: Scalar, after: Mutable[Vector[2]]):
    for _ in range(STEPS):
        k1 = growth(state, alpha, beta, gamma, delta)
        k2 = growth(state + DT / 2 * k1, alpha, beta, gamma, delta)
        k3 = growth(state + DT / 2 * k2, alpha, beta, gamma, delta)
        k4 = growth(state + DT * k3, alpha, beta, gamma, delta)
        state = state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    after = state


@hawk.kernel
def compare(state: Vector[2], pelts: Param[Vector[2]], cost: Mutable[Scalar]):
    off = hm.log(state) - hm.log(pelts)
    cost = cost + hm.dot(off, off)


class Fit:
    """The cost of `n` guesses, and its gradient by the logarithms of the six unknowns."""

    def __init__(self, n: int) -> None:
        self.unknowns = np.empty((len(UNKNOWNS), n))
        self.states = np.empty((len(YEARS), 2, n))
        self.cost = np.empty(n)
        year_plan, compare_plan = eagle.deploy([one_year, compare])
        rates = dict(zip(RATES, self.unknowns, strict=False))
        self.graph = eagle.Graph()
        state = self.unknowns[4:]
        for k, year in enumerate(YEARS):
            if k:
                self.graph.add(year_plan.bind(state=state, after=self.states[k], **rates), name=f"to {year}")
                state = self.states[k]
            self.graph.add(compare_plan.bind(state=state, pelts=(HARE[k], LYNX[k]), cost=self.cost), name=f"fit {year}")
        self.graph.build(record=True)
        self.reverse = eagle.diff.Reverse(self.graph)
        self.seed = {f"fit {YEARS[-1]}.cost": np.ones(n)}

    def gradient(self, logs: np.ndarray) -> np.ndarray:
        self.unknowns[:] = np.exp(logs)
        self.cost[:] = 0
        self.graph.launch()
        grads = self.reverse(self.graph.record, self.seed)
        return self.unknowns * np.vstack([*[grads[r] for r in RATES], grads["state"]])
