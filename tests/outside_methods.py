"""Methods that are neither in the paper nor in the catalog, for experiments that name them by their path."""

import numpy as np

from ordinalq import ARC, OPACC, HDx


class Steady(OPACC):
    """o-PACC with a stronger pull."""

    paper_name = ""

    def __init__(self, classifier=None, *, tau=0.5, solver=None):
        super().__init__(classifier, tau=tau, solver=solver)


class FineHistograms(HDx):
    """HDx by another name: a method on features."""

    paper_name = ""


class OwnTree(ARC):
    """ARC by another name: a method that fits its own classifiers."""

    paper_name = ""


class Broken(OPACC):
    """Fails in every configuration."""

    paper_name = ""

    def solve(self, summary):
        raise ValueError("the gate is shut")


class CC(OPACC):
    """Bears the name of another method."""


numbers = np.arange(3)
