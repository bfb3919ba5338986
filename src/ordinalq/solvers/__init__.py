"""Solvers that minimize the objectives of a batch of samples on the simplex."""

from ordinalq.solvers.l1 import L1Solver as L1Solver
from ordinalq.solvers.newton import NewtonSolver as NewtonSolver
from ordinalq.solvers.quadratic import QuadraticSolver as QuadraticSolver
from ordinalq.solvers.softmax import SoftmaxSolver as SoftmaxSolver
from ordinalq.solvers.solution import Solution as Solution
