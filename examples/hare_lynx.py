"""Hares and lynxes: fit a model to 21 years of the fur trade, from thousands of guesses at once.

Between 1900 and 1920 the pelts of hares and lynxes that the Hudson's Bay Company bought rose and fell twice,
the predator a year or two behind its prey. The equations of Lotka (1925) and Volterra (1926),

    d hare / dt = (alpha - beta lynx) hare        d lynx / dt = (delta hare - gamma) lynx,

have four rates; with the two populations of 1900 that makes six unknowns. We look for the least sum of squared
log errors: the most likely unknowns if every count is off by some factor. The sum has many local minima, so we
start from thousands of guesses. Each is one sample of the batch, and one reverse of the graph gives the
gradients of them all.

Data, in thousands of pelts: P. Howard, "Modeling Basics" (2009), after C. Elton and M. Nicholson, J. Animal
Ecology 11 (1942) 215, and C. G. Hewitt, "The Conservation of the Wild Life of Canada" (1921). The published
fit: B. Carpenter, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan" (2018), posterior means
under weak priors, with log-normal errors of standard deviation 0.25.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import eagle.testing
import hawk
from hawk import Mutable, Param, Scalar, Vector
from hawk import math as hm

YEARS = range(1900, 1921)
HARE = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1,
        40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
LYNX = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4,
        8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
RATES = "alpha", "beta", "gamma", "delta"
UNKNOWNS = (*RATES, "hare in 1900", "lynx in 1900")
PUBLISHED = 0.55, 0.028, 0.80, 0.024, 33.96, 5.95
LOWEST, HIGHEST = np.array([(0.1, 2), (0.005, 0.1), (0.1, 2), (0.005, 0.1), (15, 60), (2, 12)]).T  # of the guesses
STEPS_A_YEAR = 10


def growth(state, alpha, beta, gamma, delta):
    hare, lynx = state
    return hm.vec((alpha - beta * lynx) * hare, (delta * hare - gamma) * lynx)


def runge_kutta(steps: int) -> hawk.Kernel:
    """`steps` steps of the classical method of fourth order as one kernel."""
    dt = 1 / STEPS_A_YEAR

    @hawk.kernel
    def advance(state: Vector[2], alpha: Scalar, beta: Scalar, gamma: Scalar, delta: Scalar, after: Mutable[Vector[2]]):
        for _ in range(steps):
            k1 = growth(state, alpha, beta, gamma, delta)
            k2 = growth(state + dt / 2 * k1, alpha, beta, gamma, delta)
            k3 = growth(state + dt / 2 * k2, alpha, beta, gamma, delta)
            k4 = growth(state + dt * k3, alpha, beta, gamma, delta)
            state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        after = state

    return advance


@hawk.kernel
def compare(state: Vector[2], pelts: Param[Vector[2]], cost: Mutable[Scalar]):
    off = hm.log(state) - hm.log(pelts)
    cost = cost + hm.dot(off, off)


year_plan, step_plan, compare_plan = eagle.deploy([runge_kutta(STEPS_A_YEAR), runge_kutta(1), compare])


class Fit:
    """The graph for `n` guesses: from the unknowns, year by year, to the cost, and back."""

    def __init__(self, n: int) -> None:
        self.unknowns, self.cost = np.ones((6, n)), np.empty(n)
        self.states = np.empty((len(YEARS), 2, n))
        rates = dict(zip(RATES, self.unknowns, strict=False))
        self.graph, state = eagle.Graph(), self.unknowns[4:]
        for k, year in enumerate(YEARS):
            if k > 0:
                self.graph.add(year_plan.bind(state=state, after=self.states[k], **rates), name=f"to {year}")
                state = self.states[k]
            comparison = compare_plan.bind(state=state, pelts=(HARE[k], LYNX[k]), cost=self.cost)
            self.graph.add(comparison, name=f"compare {year}")
        self.graph.build(record=True)
        self.reverse = eagle.diff.Reverse(self.graph)
        self.seeds = {"compare 1920.cost": np.ones(n)}

    def gradient(self, logs: np.ndarray) -> np.ndarray:
        """The gradients by the logarithms of the unknowns, one column for each guess."""
        self.unknowns[:], self.cost[:] = np.exp(logs), 0
        self.graph.launch()
        grads = self.reverse(self.graph.record, self.seeds)
        return self.unknowns * np.vstack([*[grads[rate] for rate in RATES], grads["state"]])


def guesses(n: int) -> np.ndarray:
    """Logarithms of the unknowns, drawn evenly between the lowest and the highest."""
    low, high = np.log(LOWEST)[:, None], np.log(HIGHEST)[:, None]
    return low + (high - low) * np.random.default_rng(1900).random((6, n))


def descend(fit: Fit, logs: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Adam (Kingma and Ba, 2015) on all guesses at once; where they end, all costs, seconds a gradient."""
    mean, square = np.zeros_like(logs), np.zeros_like(logs)
    costs, seconds = [], []
    for k in range(1, iterations + 1):
        start = time.perf_counter()
        slope = fit.gradient(logs)
        seconds.append(time.perf_counter() - start)
        costs.append(fit.cost.copy())
        slope /= np.maximum(np.linalg.norm(slope, axis=0), 1)  # far off, only the direction counts
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        rate = 0.05 * (1 + np.cos(np.pi * k / iterations)) / 2
        logs = logs - rate * mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.99**k)) + 1e-12)
        if k % 50 == 0:
            print(f"{k:5} gradients: least cost {fit.cost.min():9.5f}, median {np.median(fit.cost):8.2f}", flush=True)
    fit.gradient(logs)
    return logs, np.array([*costs, fit.cost]), float(np.median(seconds))


def curves(unknowns: np.ndarray) -> np.ndarray:
    """Hares and lynxes after every step, (steps, 2, guesses)."""
    state = unknowns[4:].copy()
    step = step_plan.bind(state=state, after=state, **dict(zip(RATES, unknowns.copy(), strict=False)))
    points = [state.copy()]
    for _ in range(STEPS_A_YEAR * (len(YEARS) - 1)):
        step.launch()
        points.append(state.copy())
    return np.array(points)


def plot(path: Path, logs: np.ndarray, costs: np.ndarray) -> None:
    """The data with the best fit and some of the others, and how the costs went down."""
    from matplotlib.figure import Figure

    order = np.argsort(costs[-1])
    best, some = order[0], order[:: max(1, len(order) // 40)]
    lines, years = curves(np.exp(logs)), np.linspace(1900, 1920, STEPS_A_YEAR * 20 + 1)
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    axes = figure.subplot_mosaic([["hare", "cost"], ["lynx", "cost"]], width_ratios=[1.7, 1])
    for k, (name, pelts, color) in enumerate([("hare", HARE, "tab:blue"), ("lynx", LYNX, "tab:red")]):
        ax = axes[name]
        ax.plot(years, lines[:, k, some], color="0.75", lw=0.7)
        ax.plot([], [], color="0.75", lw=0.7, label="where other guesses ended")
        ax.plot(years, lines[:, k, best], color=color, lw=2, label="best fit")
        ax.plot(YEARS, pelts, "o", color="black", ms=4.5, label="pelts bought")
        ax.set(ylabel=f"{name} (thousands)", ylim=(0, 1.35 * max(pelts)), xlim=(1899.5, 1920.5), xticks=YEARS[::5])
        ax.legend(loc="upper center", ncols=3, fontsize=8, frameon=False)
    axes["hare"].set_title("Pelts bought by the Hudson's Bay Company")
    axes["cost"].semilogy(costs[:, some], color="0.75", lw=0.7)
    axes["cost"].semilogy(costs[:, best], color="black", lw=2)
    axes["cost"].set(title=f"The cost of {len(some)} of {len(order)} guesses", xlabel="gradients", ylabel="cost")
    for ax in axes.values():
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nplot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=4096, metavar="N", help="guesses to start from (default 4096)")
    parser.add_argument("--quick", action="store_true", help="64 guesses and fewer iterations")
    parser.add_argument("--out", type=Path, default="out", metavar="DIR", help="folder for the plot (default out)")
    options = parser.parse_args()
    starts, iterations = (64, 150) if options.quick else (options.starts, 300)
    if starts < 1:
        parser.error("--starts: at least 1")

    check = Fit(3)
    check.unknowns[:], check.cost[:] = np.exp(guesses(3)), 0
    eagle.testing.check_grads(check.graph, outputs=check.seeds, wrt=[*RATES, "state"])

    print(f"\n{starts} guesses at six unknowns, 20 years of {STEPS_A_YEAR} steps each")
    fit = Fit(starts)
    logs, costs, seconds = descend(fit, guesses(starts), iterations)
    print(f"{1000 * seconds:.2f} ms for the gradients of all, {1e6 * seconds / starts:.2f} us for one guess's six")

    best = np.argmin(fit.cost)
    reached = np.sum(fit.cost < 1.001 * fit.cost[best])
    spread = np.sqrt(fit.cost[best] / (2 * len(YEARS)))
    print(
        f"\n{reached} of {starts} guesses end at the best fit: cost {fit.cost[best]:.4f}, log errors of {spread:.2f}\n"
    )
    print(f"{'':14}{'here':>9}{'published':>12}")
    for name, ours, theirs in zip(UNKNOWNS, fit.unknowns[:, best], PUBLISHED, strict=True):
        print(f"{name:14}{ours:9.4g}{theirs:12.4g}")
    plot(options.out / "hare_lynx.png", logs, costs)


if __name__ == "__main__":
    main()
