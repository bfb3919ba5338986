"""Data model: samples of items, keys of groups, labels, weights, summaries."""

from ordinalq.samples.keys import Keys as Keys
from ordinalq.samples.samples import Samples as Samples
from ordinalq.samples.summary import Summary as Summary
from ordinalq.samples.weights import Weights as Weights
