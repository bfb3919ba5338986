"""The default: a quantifier for those who name none, made of public parts, with the reasons for its choices."""

from ordinalq.training.choice import BUDGETS, Choice, choose
from ordinalq.training.default import Training, train
from ordinalq.training.expected import expected_error

__all__ = ["BUDGETS", "Choice", "Training", "choose", "expected_error", "train"]
