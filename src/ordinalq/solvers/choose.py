"""The default solver of an objective, and solvers by name."""

from typing import Any

from ordinalq.solvers.l1 import L1Solver
from ordinalq.solvers.newton import NewtonSolver
from ordinalq.solvers.objectives import Objective
from ordinalq.solvers.quadratic import QuadraticSolver
from ordinalq.solvers.softmax import SoftmaxSolver

SOLVERS = {"quadratic": QuadraticSolver, "newton": NewtonSolver, "l1": L1Solver, "softmax": SoftmaxSolver}


def choose(objective: Objective, solver: Any = None) -> Any:
    """Return the solver for an objective: given, named, or the best suited.

    A quadratic objective gets the exact `QuadraticSolver`, a sum of absolute residuals the exact `L1Solver`, anything
    else the `NewtonSolver`. The `SoftmaxSolver` is used on request.
    """
    check_solver(solver)
    if solver is None:
        if objective.quadratic() is not None:
            return QuadraticSolver()
        return L1Solver() if objective.absolute() is not None else NewtonSolver()
    return SOLVERS[solver]() if isinstance(solver, str) else solver


def check_solver(solver: Any, also: tuple[str, ...] = ()) -> None:
    """Raise an error unless `solver` is None, a solver, or a known name."""
    names = (*SOLVERS, *also)
    if isinstance(solver, str) and solver not in names:
        raise ValueError(f"solver must be one of {', '.join(map(repr, names))}, or an object, got {solver!r}.")
    if not (solver is None or isinstance(solver, str) or hasattr(solver, "minimize")):
        raise TypeError(f"solver must be None, a name or an object with a method minimize, got {solver!r}.")
