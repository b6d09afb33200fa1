"""Hares and lynxes: fit a model to 21 years of the fur trade, from 10,000 guesses at once.

Between 1900 and 1920 the pelts of hares and lynxes that the Hudson's Bay Company bought rose and fell twice,
the predator a year or two behind its prey. The equations of Lotka (1925) and Volterra (1926),

    d hare / dt = (alpha - beta lynx) hare        d lynx / dt = (delta hare - gamma) lynx,

have four rates; with the two populations of 1900 that makes six unknowns. We look for the least sum of squared
log errors: the most likely unknowns if every count is off by some factor. The sum has many local minima, so we
start from thousands of guesses. Each is one sample of a run, and one reverse of the run gives the gradients of
them all.

Data, in thousands of pelts: P. Howard, "Modeling Basics" (2009), after C. Elton and M. Nicholson, J. Animal
Ecology 11 (1942) 215, and C. G. Hewitt, "The Conservation of the Wild Life of Canada" (1921). The published
fit: B. Carpenter, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan" (2018), posterior means
under weak priors, with log-normal errors of standard deviation 0.25.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import eagle
import hawk
from hawk import Int32, Mutable, Table, Terminated, Vector
from hawk import math as hm

YEARS = range(1900, 1921)
HARE = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1,
        40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
LYNX = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4,
        8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
UNKNOWNS = "alpha", "beta", "gamma", "delta", "hare in 1900", "lynx in 1900"
PUBLISHED = 0.55, 0.028, 0.80, 0.024, 33.96, 5.95
LOWEST, HIGHEST = np.array([(0.1, 2), (0.005, 0.1), (0.1, 2), (0.005, 0.1), (15, 60), (2, 12)]).T  # of the guesses
A_YEAR = 10  # steps
LAST = A_YEAR * (len(YEARS) - 1)


def growth(animals, rates):
    hare, lynx = animals
    alpha, beta, gamma, delta = rates
    return hm.vec((alpha - beta * lynx) * hare, (delta * hare - gamma) * lynx)


@hawk.kernel
def step(
    rates: Vector[4],
    pelts: Table["year":21, "animal":2],
    animals: Mutable[Vector[2]],
    cost: Mutable[hawk.Scalar],
    now: Mutable[Int32],
    over: Terminated,
):
    """At the turn of a year compare with the pelts; then a Runge-Kutta step of a tenth of a year."""
    if now % A_YEAR == 0:
        year = now // A_YEAR
        off = hm.log(animals) - hm.log(hm.vec(pelts.at(year=year, animal=0), pelts.at(year=year, animal=1)))
        cost = cost + hm.dot(off, off)
    dt = 1 / A_YEAR
    k1 = growth(animals, rates)
    k2 = growth(animals + dt / 2 * k1, rates)
    k3 = growth(animals + dt / 2 * k2, rates)
    k4 = growth(animals + dt * k3, rates)
    animals = animals + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    now = now + 1
    over = now > LAST


class Fit:
    """The run of `n` guesses at the unknowns, an array (6, n): from them to the costs, and back."""

    def __init__(self, n: int) -> None:
        planes = dict(rates=np.ones((4, n)), animals=np.ones((2, n)), cost=np.zeros(n), now=np.zeros(n, np.int32))
        pelts = np.array([HARE, LYNX]).T.copy()
        self.run = eagle.simulation(step, pelts=pelts, **planes, max_steps=LAST + 1, record=True)
        self.seeds = {"cost": np.ones(n)}

    def costs(self, unknowns: np.ndarray) -> np.ndarray:
        return self.run.run(rates=unknowns[:4], animals=unknowns[4:]).cost.copy()

    def gradients(self) -> np.ndarray:
        """Of each guess's cost by its unknowns, where `costs` was last asked for them."""
        grads = eagle.diff.reverse(self.run.record, self.seeds)
        return np.vstack([grads["rates"], grads["animals"]])

    def curves(self, unknowns: np.ndarray) -> np.ndarray:
        """Hares and lynxes after every step, (steps, 2, guesses)."""
        runner, points = self.run.runner, [unknowns[4:]]
        runner.set_start({"rates": unknowns[:4], "animals": unknowns[4:]})
        runner.reset()
        for _ in range(LAST):
            points.append(runner.run(steps=1).animals.copy())
        return np.array(points)


def check(at: np.ndarray) -> None:
    """The gradient of one guess beside central differences: the twelve neighbours are one batch."""
    one, neighbours = Fit(1), Fit(12)
    one.costs(at[:, None])
    found = one.gradients()[:, 0]
    h = 1e-5 * at
    ahead, behind = np.split(neighbours.costs(at[:, None] + np.hstack([np.diag(h), np.diag(-h)])), 2)
    print(f"{'the gradient':14}{'by a reverse':>16}{'by differences':>17}{'apart':>10}")
    for name, ours, theirs in zip(UNKNOWNS, found, (ahead - behind) / (2 * h), strict=True):
        apart = abs(ours - theirs) / abs(theirs)
        print(f"{name:14}{ours:16.8f}{theirs:17.8f}{apart:10.1e}{'' if apart < 1e-6 else '  WRONG'}")


def guesses(n: int) -> np.ndarray:
    """Logarithms of the unknowns, drawn evenly between the lowest and the highest."""
    low, high = np.log(LOWEST)[:, None], np.log(HIGHEST)[:, None]
    return low + (high - low) * np.random.default_rng(1900).random((6, n))


def descend(fit: Fit, logs: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Adam (Kingma and Ba, 2015) on all guesses at once; where they end, all costs, seconds a gradient."""
    mean, square = np.zeros_like(logs), np.zeros_like(logs)
    costs, seconds = [], []
    for k in range(1, iterations + 1):
        unknowns, start = np.exp(logs), time.perf_counter()
        costs.append(fit.costs(unknowns))
        slope = unknowns * fit.gradients()  # by the logarithms
        seconds.append(time.perf_counter() - start)
        slope /= np.maximum(np.linalg.norm(slope, axis=0), 1)  # far off, only the direction counts
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        rate = 0.05 * (1 + np.cos(np.pi * k / iterations)) / 2
        logs = logs - rate * mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.99**k)) + 1e-12)
        if k % 50 == 0:
            print(f"{k:5} gradients: least cost {costs[-1].min():9.5f}, median {np.median(costs[-1]):8.2f}", flush=True)
    costs.append(fit.costs(np.exp(logs)))
    return logs, np.array(costs), float(np.median(seconds))


def plot(path: Path, logs: np.ndarray, costs: np.ndarray) -> None:
    """The data with the best fit and some of the others, and how the costs went down."""
    from matplotlib.figure import Figure

    order = np.argsort(costs[-1])
    some = order[:: max(1, len(order) // 40)]  # the best comes first
    lines, years = Fit(len(some)).curves(np.exp(logs[:, some])), np.linspace(1900, 1920, LAST + 1)
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    axes = figure.subplot_mosaic([["hare", "cost"], ["lynx", "cost"]], width_ratios=[1.7, 1])
    for k, (name, pelts, color) in enumerate([("hare", HARE, "tab:blue"), ("lynx", LYNX, "tab:red")]):
        ax = axes[name]
        ax.plot(years, lines[:, k], color="0.75", lw=0.7)
        ax.plot([], [], color="0.75", lw=0.7, label="where other guesses ended")
        ax.plot(years, lines[:, k, 0], color=color, lw=2, label="best fit")
        ax.plot(YEARS, pelts, "o", color="black", ms=4.5, label="pelts bought")
        ax.set(ylabel=f"{name} (thousands)", ylim=(0, 1.35 * max(pelts)), xlim=(1899.5, 1920.5), xticks=YEARS[::5])
        ax.legend(loc="upper center", ncols=3, fontsize=8, frameon=False)
    axes["hare"].set_title("Pelts bought by the Hudson's Bay Company")
    axes["cost"].semilogy(costs[:, some], color="0.75", lw=0.7)
    axes["cost"].semilogy(costs[:, some[0]], color="black", lw=2)
    axes["cost"].set(title=f"The cost of {len(some)} of {len(order):,} guesses", xlabel="gradients", ylabel="cost")
    for ax in axes.values():
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nplot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=10_000, metavar="N", help="guesses to start from (default 10000)")
    parser.add_argument("--quick", action="store_true", help="64 guesses and fewer iterations")
    parser.add_argument("--out", type=Path, default="out", metavar="DIR", help="folder for the plot (default out)")
    options = parser.parse_args()
    starts, iterations = (64, 150) if options.quick else (options.starts, 300)
    if starts < 1:
        parser.error("--starts: at least 1")

    check(np.exp(guesses(1))[:, 0])
    print(f"\n{starts:,} guesses at six unknowns, {LAST} steps each")
    fit = Fit(starts)
    logs, costs, seconds = descend(fit, guesses(starts), iterations)
    print(f"{1000 * seconds:.1f} ms for the gradients of all, {1e6 * seconds / starts:.1f} us for one guess's six")

    best = np.argmin(costs[-1])
    least = costs[-1, best]
    reached, error = np.sum(costs[-1] < 1.001 * least), np.sqrt(least / (2 * len(YEARS)))
    print(f"\n{reached:,} of {starts:,} guesses end at the best fit: cost {least:.4f}, log errors of {error:.2f}\n")
    print(f"{'':14}{'here':>9}{'published':>12}")
    for name, ours, theirs in zip(UNKNOWNS, np.exp(logs[:, best]), PUBLISHED, strict=True):
        print(f"{name:14}{ours:9.4g}{theirs:12.4g}")
    plot(options.out / "hare_lynx.png", logs, costs)


if __name__ == "__main__":
    main()
