"""Coverage and error of unfolded spectra, on toys.

Five spectra over 12 bins of energy, an acceptance of 5 to 80 %, a resolution of 0.8 bins, 50,000 observed events and
10 % of background; once with the fluctuations of the counts alone, once with a response that is off by 5 % in each
entry, in another way in each toy, which the unfolding is told as an uncertainty. ``--development`` takes the fifteen
other spectra on which the default was chosen: 60 toys each, 50,000 and 10,000 events. ``--spectrum`` and ``--errors``
take a part, so that a long run can be split.
"""

import argparse
from time import process_time

import numpy as np

import ordinalq as oq
from ordinalq.unfolding.checks import unfold_toys
from ordinalq.unfolding.engine import Unfolder
from ordinalq.unfolding.strength import scan

N_BINS = 12
N_OBSERVED = 50_000
LEVELS = (0.6827, 0.95)
ERRORS = {"statistical": 0.0, "response": 0.05}


def detector():
    """Return energies (12,), a response (12, 12) and an acceptance (12,)."""
    edges = np.logspace(2.5, 4.5, N_BINS + 1)
    energy = np.sqrt(edges[:-1] * edges[1:])
    distance = np.arange(N_BINS)[:, None] - np.arange(N_BINS)
    M = np.exp(-0.5 * ((distance + 0.25) / 0.8) ** 2)
    rise = 1 / (1 + (900 / energy) ** 2.5)
    return energy, M / M.sum(axis=0), 0.05 + 0.75 * (rise - rise[0]) / (rise[-1] - rise[0])


def spectra():
    """Return the five spectra of the report by name, (12,) each."""
    x = np.log(detector()[0] / 1000)
    return {
        "power law": np.exp(-1.7 * x),
        "broken power law": np.exp(-1.2 * x - 1.0 * np.maximum(x - np.log(3), 0)),
        "log-parabola": np.exp(-1.4 * x - 0.15 * x**2),
        "line on a continuum": np.exp(-1.5 * x) + 1.2 * np.exp(-1.35 - 0.5 * ((x - 0.9) / 0.18) ** 2),
        "flat": np.ones(N_BINS),
    }


def development():
    """Return the spectra on which orders, price and pilot of the default were chosen."""
    energy = detector()[0]
    x = np.log(energy / 1000)

    def line(centre, width, height):
        return height * np.exp(-0.5 * ((x - centre) / width) ** 2)

    return {
        "power law 2.0": np.exp(-2.0 * x),
        "power law 1.3": np.exp(-1.3 * x),
        "knee": np.exp(-1.4 * x - 1.3 * np.maximum(x - 0.7, 0)),
        "late knee": np.exp(-0.9 * x - 0.8 * np.maximum(x - 1.4, 0)),
        "ankle": np.exp(-1.9 * x + 0.7 * np.maximum(x - 0.8, 0)),
        "parabola 0.10": np.exp(-1.5 * x - 0.1 * x**2),
        "parabola 0.25": np.exp(-1.1 * x - 0.25 * x**2),
        "parabola upwards": np.exp(-1.6 * x + 0.1 * x**2),
        "cut-off": np.exp(-1.3 * x - energy / 12000),
        "line at 0.5": np.exp(-1.6 * x) + line(0.5, 0.2, 0.35),
        "line at 1.4": np.exp(-1.3 * x) + line(1.4, 0.18, 0.15),
        "wide line": np.exp(-1.7 * x) + line(1.2, 0.25, 0.15),
        "dip": np.exp(-1.5 * x) * (1 - line(0.8, 0.3, 0.6)),
        "rise": np.exp(0.3 * x),
        "bump": 1 + line(0.8, 0.4, 1.0),
    }


def methods(a):
    """Return what `unfold` is asked for, by name; the default comes first, the others use its scans."""
    return {
        "default": {},
        "no regularization": {"method": oq.RUN(tau=0.0)},
        "RUN, n_df = 10": {"method": oq.RUN(n_df=10, acceptance=a)},
        "IBU, ks < 0.0001": {"method": oq.IBU(interpolation=0.0, stop="ks", tol=1e-4, max_iter=400)},
    }


def draw(t, M, a, b, n_toys, off, rng):
    """Draw histograms (n_toys, 12), each with a response whose entries are off by a part `off`."""
    if off == 0:
        return rng.poisson(M @ (a * t) + b, (n_toys, len(b))).astype(float)
    others = np.maximum(M * (1 + off * rng.normal(size=(n_toys, *M.shape))), 0)
    others /= others.sum(axis=1, keepdims=True)
    return rng.poisson(others @ (a * t) + b).astype(float)


def toys_of(number, t, n_toys, off, seed):
    """Return the background and the histograms of one spectrum."""
    _, M, a = detector()
    b = np.linspace(1.6, 0.4, N_BINS)
    b *= 0.1 / 0.9 * (a * t).sum() / b.sum()
    rng = np.random.default_rng([seed, number, int(1000 * off)])
    return b, draw(t, M, a, b, n_toys, off, rng)


def errors(spectrum, t, scans, T):
    """Print the mean squared error of the default's estimates T beside that of the best strength in hindsight."""
    for measure, weight in (("sum (t^ - t)^2 / t", 1 / t), ("sum (t^ - t)^2", np.ones(N_BINS))):
        third, second = (((of.T - t) ** 2 * weight).sum(axis=2).mean(axis=1).min() for of in scans)
        default = ((T - t) ** 2 * weight).sum(axis=1).mean()
        print(
            f"{spectrum:20} {measure:18} default / best strength {default / third:5.2f}"
            f"  / best strength and order {default / min(third, second):5.2f}"
        )


def coverage(number, spectrum, t, n_toys, off, seed):
    """Print how often intervals hold the truth t (12,), per method."""
    _, M, a = detector()
    sources = {"response": oq.unfolding.Uncertainty("response", off, relative=True)} if off else {}
    b, G = toys_of(number, t, n_toys, off, seed)
    seen = []
    for name, asked in methods(a).items():
        start = process_time()
        one = oq.unfold(G[0], M, acceptance=a, background=b, systematics=sources, **asked)
        seen = seen or [scan(Unfolder(method, one.measurement, one.shifts), G) for method in one.scan.tried]
        toys = unfold_toys(one, G, seen)
        if name == "default":
            errors(spectrum, t, seen, toys.T)
        cells = []
        for level in LEVELS:
            for bias in (False, True):
                inside = toys.hold(t, level, bias=bias).mean(axis=0)
                cells.append(f"{inside.mean():6.1%} ({inside.min():6.1%})")
        long, short = (toys.half_length(LEVELS[0], bias=bias) for bias in (True, False))
        width = np.median(long / np.maximum(short, 1e-12))
        row = f"{off:4.0%}  {spectrum:20} {name:18} " + "  ".join(cells)
        print(f"{row}  {width:5.2f}  {process_time() - start:5.1f} s", flush=True)


def main():
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few toys, to see that it runs")
    parser.add_argument("--toys", type=int, default=1000)
    parser.add_argument("--events", type=int, default=N_OBSERVED)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--spectrum", help="one spectrum by its name")
    parser.add_argument("--errors", choices=list(ERRORS))
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    shapes, a = development() if options.development else spectra(), detector()[2]
    print("mean coverage (worst bin): 68 % without bias, with it; 95 % the same; length with bias / without")
    for kind in ERRORS if options.errors is None else [options.errors]:
        for number, (spectrum, shape) in enumerate(shapes.items()):
            if options.spectrum in (None, spectrum) and not (options.tiny and number):
                t = options.events * shape / (a * shape).sum()
                coverage(number, spectrum, t, 6 if options.tiny else options.toys, ERRORS[kind], options.seed)


if __name__ == "__main__":
    main()
