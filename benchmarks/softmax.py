"""The soft-max solver of the paper next to the solvers on the simplex: values and time on 2,000 problems."""

import sys
import time

import numpy as np

from ordinalq.losses import CumulativeSquares, Hellinger, LeastSquares, Poisson
from ordinalq.regularizers import NoPenalty, Tikhonov
from ordinalq.simplex import Data
from ordinalq.solvers.choose import choose
from ordinalq.solvers.objectives import LinearObjective

N_ITEMS = 1000
INSIDE = 1e-4


def main(n_problems):
    """Print a line per loss, regularizer and number of classes, and the sums."""
    rng = np.random.default_rng(0)
    print("loss                 tau  classes  inside  excess inside  excess on faces  steps  us simplex  us soft-max")
    total = np.zeros(2)
    for n in (5, 10):
        M = 0.3 * rng.dirichlet(np.full(2 * n, 0.5), n).T + 0.35 * np.kron(np.eye(n), np.ones((2, 1)))
        for loss in (LeastSquares(), Poisson(), Hellinger(), CumulativeSquares()):
            for tau in (0.0, 1e-2):
                Q = rng.multinomial(N_ITEMS, rng.dirichlet(np.ones(n), n_problems) @ M.T) / N_ITEMS
                objective = LinearObjective(
                    loss, Tikhonov(tau) if tau else NoPenalty(), Data(Q, M, np.full(n_problems, N_ITEMS))
                )
                found, seconds = [], []
                for solver in (None, "softmax"):
                    start = time.process_time()
                    found.append(choose(objective, solver).minimize(objective))
                    seconds.append(time.process_time() - start)
                total += seconds
                excess = (found[1].value - found[0].value) / objective.scale
                inside = found[0].p.min(axis=1) > INSIDE
                print(
                    f"{type(loss).__name__:18} {tau:5g} {n:8} {inside.mean():7.2f} "
                    f"{excess[inside].max(initial=0):14.1e} {excess[~inside].max(initial=0):16.1e} "
                    f"{found[1].n_iter.mean():6.1f} "
                    f"{1e6 * seconds[0] / n_problems:11.0f} {1e6 * seconds[1] / n_problems:12.0f}"
                )
    print(f"{16 * n_problems} problems: {total[0]:.2f} s on the simplex, {total[1]:.2f} s through the soft-max")


if __name__ == "__main__":
    main(10 if "--tiny" in sys.argv else 125)
