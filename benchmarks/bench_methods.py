"""Speed, memory and accuracy of all methods, next to other packages and next to a scipy loop, in one run on one core.

Run it with ``python benchmarks/bench_methods.py``; ``--quick`` takes a minute or two, all of it about ten. The
workload is fried (10 classes) with the scores of one forest given; see :mod:`workload`. Times are per sample of 1000
items, with the averaging and without the representation of the pool, which is done once and printed separately.
Targets are compared with the best of several runs, ratios are taken between medians. All times are processor time of
the process, which runs on one core: other programs on the machine disturb it little.
"""

import os

# One core; NumPy reads this when it is imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import importlib.metadata
import json
import platform
import resource
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import scipy_loop
from interface import linear_objective
from peers import N_BINS, PDF_BINS, PEERS, SLD_TAU, TAU, available, peer_versions
from workload import BUDGET, N_CLASSES, N_TRAIN, SAMPLE_SIZE, clock, make_workload, peak_memory

import ordinalq as oq
from ordinalq.representations import MeanDistances
from ordinalq.simplex import clean

RESULTS = Path(__file__).with_name("results.md")

# Microseconds per sample that each method may take.
TARGETS = {
    **dict.fromkeys(("CC", "PCC"), 10),
    **dict.fromkeys(("ACC", "PACC", "OACC", "OPACC", "EDy", "OEDy"), 20),
    "OPDF": 100,
    "RUN": 200,
    **dict.fromkeys(("HDx", "HDy", "OHDx", "OHDy"), 2000),
    **dict.fromkeys(("SLD", "OSLD"), 1200),
    "IBU": 60,
    "PDF": 500,
}
NEWTON_SLD_TARGET = 600
# Largest KKT residual of the methods that are solved exactly.
KKT_TARGETS = dict.fromkeys(("ACC", "PACC", "OACC", "OPACC", "EDy", "OEDy"), 1e-10)
# Settings that are measured instead of the defaults.
SETTINGS = {
    "OPDF": [{"n_bins": 55}, {"n_bins": 110}],
    "SLD": [{}, {"solver": "newton"}],
}
# Asked ratio to the fastest peer that finds the same minimum.
PEER_RATIOS = {"ACC": 500, "PACC": 500, "EDy": 500, "HDx": 5, "HDy": 5, "PDF": 5}
# Asked ratio to a scipy loop, where no peer has the method.
LOOP_RATIO = 100
LOOP_METHODS = ("RUN", "OACC", "OPACC", "OHDx", "OHDy", "OEDy", "OPDF")
QUADRATIC_METHODS = ("ACC", "PACC", "EDy", "OACC", "OPACC", "OEDy", "OPDF")
# The same minimum: at most this part of the possible descent is missed, in nine samples of ten. Peers stop early on
# the Hellinger distance, which is not convex, and where nothing is minimised, the excess is a difference of estimates.
SAME_EXCESS, SAME_EXCESS_CONVEX, SAME_SHARE = 1e-3, 1e-5, 0.9
# Bare quadratic programs, fed with our M and q: a solver in a loop, not a method of a package.
BARE_PROGRAMS = ("solve_l2", "DAQP")
# The tiny version: items of fried, items per sample, and batches of the growth.
TINY_ITEMS, TINY_SIZE = 3000, 50
TINY_GROWTH = [(10, 50), (20, 50)]


# --- rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodRow:
    """One of our methods on one number of samples."""

    method: str
    samples: int
    us_per_sample: float
    target_us: float | None
    verdict: str
    representation_ms: float
    peak_mb: float
    nmd: float
    max_kkt: float


@dataclass(frozen=True)
class RivalRow:
    """Another package's method, or a scipy loop, on the first samples, next to ours on all of them."""

    method: str
    rival: str
    ms_per_sample: float
    nmd: float
    gap_median: float
    gap_max: float
    same_minimum: bool
    failed: int
    our_us: float
    ratio: float
    ratio_with_representation: float


@dataclass(frozen=True)
class RatioRow:
    """One of our methods next to the fastest rival that finds the same minimum."""

    method: str
    fastest: str
    ms_per_sample: float
    our_us: float
    ratio: float
    asked: float | None
    verdict: str


@dataclass(frozen=True)
class ScalingRow:
    """OPACC on batches of several sizes."""

    samples: int
    items_per_sample: int
    seconds: float
    us_per_sample: float
    ns_per_item: float


@dataclass(frozen=True)
class CheckRow:
    """A figure next to its limit."""

    figure: str
    measured: float
    limit: float | None
    verdict: str


def judge(measured, limit):
    """Return whether a figure is within its limit."""
    return "" if limit is None else "ok" if measured <= limit else "MISSED"


# --- our methods --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """A quantifier fitted on given scores, with the pool that it takes.

    Attributes
    ----------
    label : str
        Name with the parameters that are not defaults.
    name : str
    q : fitted quantifier
    S : ndarray (N, n)
        Scores of the pool, or features.
    """

    label: str
    name: str
    q: object
    S: np.ndarray

    def representation(self):
        """Return the representation of the pool, or None where the method has none."""
        part = getattr(self.q, "representation_", None)
        return None if part is None else part.transform(self.S)

    def representation_seconds(self):
        """Best time of the representation of the pool."""
        return 0.0 if self.representation() is None else clock(self.representation, budget=0.5).best

    def predict(self, samples):
        """Estimate (B, n)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.q.predict_scores(self.S, samples)

    def objective(self, samples):
        """Objective of the samples, or None where the method minimizes none (CC, PCC and the iterations)."""
        F = self.representation()
        return None if F is None else linear_objective(self.q, samples.average(F), samples.sizes)


def fit(entry, workload, parameters):
    """Fit a method of the catalog on given scores; None where it takes only items (TypeError)."""
    V, S = workload.given(entry.name)
    try:
        q = entry.cls(**parameters).fit_scores(V, workload.y_train)
    except TypeError:
        return None
    label = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return Fitted(f"{entry.name}({label})" if label else entry.name, entry.name, q, S)


def method_row(fitted, samples, target):
    """Measure one method on one batch."""
    representation = fitted.representation_seconds()
    seconds = clock(lambda: fitted.predict(samples)).best - representation
    us = 1e6 * seconds / len(samples)
    solution = fitted.q.solve_scores(fitted.S, samples)
    kkt = float(solution.kkt.max())
    verdicts = {judge(us, target), judge(kkt, KKT_TARGETS.get(fitted.name))}
    return MethodRow(
        fitted.label,
        len(samples),
        us,
        target,
        "MISSED" if "MISSED" in verdicts else "ok" if "ok" in verdicts else "",
        1e3 * representation,
        peak_memory(lambda: fitted.predict(samples)),
        float(oq.metrics.nmd(samples.prevalences, solution.p).mean()),
        kkt,
    )


def measure_methods(workload, batches):
    """Measure every method of the catalog; return the rows and the names that were left out."""
    rows, left_out = [], []
    for entry in oq.catalog(beyond=False):
        for parameters in SETTINGS.get(entry.name, [{}]):
            fitted = fit(entry, workload, parameters)
            if fitted is None:
                left_out.append(entry.name)
                break
            newton = entry.name == "SLD" and parameters.get("solver") == "newton"
            target = NEWTON_SLD_TARGET if newton else TARGETS.get(entry.name)
            for samples in batches:
                rows.append(method_row(fitted, samples, target))
                progress(f"{rows[-1].method}, {len(samples)} samples: {rows[-1].us_per_sample:.1f} us")
    return rows, left_out


# --- rivals -------------------------------------------------------------------------------------------------


def peer_parameters(peer):
    """Return the parameters that give our method the peer's problem."""
    if peer.method == "SLD":
        if "regularized" in peer.note:
            return {"tau": SLD_TAU}
        return {"solver": "newton"} if "maximum likelihood" in peer.note else {}
    parameters = {
        "HDx": {"n_bins": N_BINS},
        "HDy": {"n_bins": N_BINS},
        "OACC": {"tau": TAU},
        "OPACC": {"tau": TAU},
        "PDF": {"n_bins": PDF_BINS * (N_CLASSES - 1)},
        "IBU": {"interpolation": 0.0},
    }
    return parameters.get(peer.method, {})


class Ours:
    """Our method with given parameters, timed on the whole batch: what rivals are compared with."""

    def __init__(self, fitted, samples, n_first):
        self.fitted = fitted
        self.first = samples[: min(n_first, len(samples))]
        self.representation_us = 1e6 * fitted.representation_seconds() / len(samples)
        self.us = 1e6 * clock(lambda: fitted.predict(samples)).median / len(samples) - self.representation_us
        self.P = fitted.predict(self.first)
        self.objective = fitted.objective(self.first)

    def excesses(self, P):
        """Missed part of the possible descent of P (B, n), (L(p) - L(ours)) / (L(uniform) - L(ours)).

        Where nothing is minimised, the largest difference from our estimate instead.
        """
        if self.objective is None:
            return np.abs(P - self.P).max(axis=1)
        rows = np.arange(len(P))
        uniform, ours, other = (self.objective.value(p, rows) for p in (np.full(P.shape, 1 / P.shape[1]), self.P, P))
        return (other - ours) / (uniform - ours)

    def row(self, rival, P, seconds):
        """Compare estimates P (B, n) and times (B,) of a rival; rows of NaN are samples on which it failed."""
        fine = ~np.isnan(P).any(axis=1)
        P = np.where(fine[:, None], clean(P), np.nan)  # some answers are negative by rounding
        excesses = self.excesses(np.where(fine[:, None], P, self.P))[fine]
        convex = self.objective is not None and self.objective.convex
        ms = 1e3 * float(np.median(seconds))
        return RivalRow(
            self.fitted.label,
            rival,
            ms,
            float(oq.metrics.nmd(self.first.prevalences[fine], P[fine]).mean()),
            float(np.median(excesses)),
            float(excesses.max()),
            bool((excesses <= (SAME_EXCESS_CONVEX if convex else SAME_EXCESS)).sum() >= SAME_SHARE * len(P)),
            int((~fine).sum()),
            self.us,
            1e3 * ms / self.us,
            1e3 * ms / (self.us + self.representation_us),
        )


def measure_peers(workload, samples, n_first):
    """Run the peers that are installed on the first samples."""
    entries = {entry.name: entry for entry in oq.catalog(beyond=False)}
    ours, rows = {}, []
    for peer in available():
        if peer.method not in entries:
            continue
        parameters = peer_parameters(peer)
        key = peer.method, tuple(parameters.items())
        if key not in ours:
            fitted = fit(entries[peer.method], workload, parameters)
            ours[key] = Ours(fitted, samples, n_first)
        first = ours[key].first
        index = first.items.reshape(len(first), -1)
        try:
            P, seconds = peer.run(
                workload.S_train, workload.y_train, workload.S_pool, index, workload.X_train, workload.X_pool
            )
        except Exception as error:  # another version of a package may differ in anything
            progress(f"{peer.package} {peer.method} ({peer.note}) failed: {error}")
            continue
        rows.append(ours[key].row(f"{peer.package}: {peer.note}", P, seconds))
        progress(f"{rows[-1].method}, {rows[-1].rival}: {rows[-1].ms_per_sample:.2f} ms")
    order = list(entries)
    return sorted(rows, key=lambda row: (order.index(row.method.split("(")[0]), row.ms_per_sample))


def measure_loops(workload, samples, n_first):
    """Run the scipy loops on the first samples, and DAQP if it is installed and the method is quadratic."""
    rows = []
    for entry in oq.catalog(beyond=False):
        ways = scipy_loop.WAYS if entry.name in LOOP_METHODS else {}
        if entry.name in QUADRATIC_METHODS:
            ways = ways | scipy_loop.QUADRATIC_WAYS
        if not ways:
            continue
        fitted = fit(entry, workload, {})
        ours, F = Ours(fitted, samples, n_first), np.asarray(fitted.representation())
        for way in ways:
            name = way if way in scipy_loop.QUADRATIC_WAYS else f"scipy: {way}"
            rows.append(ours.row(name, *scipy_loop.loop(fitted.q, F, ours.first, way)))
            progress(f"{rows[-1].method}, {way}: {rows[-1].ms_per_sample:.2f} ms")
    return rows


def ratio_rows(rivals, asked):
    """For each method the fastest rival that finds the same minimum; `asked` gives the ratio by method name."""
    rows = []
    for (method, bare), group in grouped(rivals).items():
        limit = None if bare else asked.get(method.split("(")[0])
        same = [row for row in group if row.same_minimum]
        if not same:
            rows.append(RatioRow(method, "none", np.nan, np.nan, np.nan, limit, ""))
            continue
        best = min(same, key=lambda row: row.ms_per_sample)
        verdict = "" if limit is None else judge(limit, best.ratio)
        rows.append(RatioRow(method, best.rival, best.ms_per_sample, best.our_us, best.ratio, limit, verdict))
    return rows


def grouped(rivals):
    """Rivals by method, and by whether they are only a bare quadratic program."""
    groups = {}
    for row in sorted(rivals, key=lambda row: any(bare in row.rival for bare in BARE_PROGRAMS)):
        groups.setdefault((row.method, any(bare in row.rival for bare in BARE_PROGRAMS)), []).append(row)
    return groups


# --- growth -------------------------------------------------------------------------------------------------


def measure_scaling(workload, sizes):
    """Time OPACC on batches of (samples, items per sample)."""
    q = oq.OPACC().fit_scores(workload.S_train, workload.y_train)
    rows = []
    for n_samples, n_items in sizes:
        samples = workload.samples(n_samples, n_items)
        seconds = clock(lambda samples=samples: q.predict_scores(workload.S_pool, samples)).best
        items = n_samples * n_items
        rows.append(ScalingRow(n_samples, n_items, seconds, 1e6 * seconds / n_samples, 1e9 * seconds / items))
    return rows


def peak_rss_mb():
    """Largest resident memory of this process so far, in MB.

    From /proc if present: the resource module counts what the parent had when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def large_batch(n_samples, n_pool):
    """OPACC on many samples of 1000 items over a large pool of random scores; meant for a separate process."""
    rng = np.random.default_rng(0)
    S = rng.dirichlet(np.full(N_CLASSES, 0.3), size=n_pool)
    train = S[:N_TRAIN]
    y = (train.cumsum(axis=1) > rng.random((len(train), 1))).argmax(axis=1)
    q = oq.OPACC().fit_scores(train, y)
    index = rng.integers(n_pool, size=(n_samples, SAMPLE_SIZE), dtype=np.int32)
    samples = oq.Samples.from_index(index, n_pool)
    start = time.process_time()
    q.predict_scores(S, samples)
    return {"seconds": time.process_time() - start, "peak_mb": peak_rss_mb()}


def large_batch_alone(n_samples, n_pool):
    """Run :func:`large_batch` in a separate process, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--large-batch", str(n_samples), str(n_pool)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_checks(workload, n_drawn, n_samples, n_pool):
    """Figures with a limit: representation of EDy, protocols, and a large batch."""
    part = MeanDistances().fit(workload.S_train, workload.y_train, N_CLASSES)
    ms = 1e3 * clock(lambda: part.transform(workload.S_pool)).best * 10_000 / len(workload.S_pool)
    rows = [("representation of EDy, ms per 10,000 items", ms, 50.0)]
    protocol = oq.protocols.APP(n_drawn, SAMPLE_SIZE, random_state=0)
    y = np.random.default_rng(0).permutation(np.arange(100_000) % N_CLASSES)
    seconds = clock(lambda: protocol.draw(y), at_least=2).best
    rows.append((f"{n_drawn} APP samples of 1000 items from 100,000 items, seconds", seconds, 3.0))
    rows.append(("  peak memory by tracemalloc, MB", peak_memory(lambda: protocol.draw(y)), 300.0))
    large = large_batch_alone(n_samples, n_pool)
    rows.append((f"OPACC, {n_samples:,} samples of 1000 items, pool of {n_pool:,}, seconds", large["seconds"], None))
    rows.append(("  peak resident memory of the process, MB", large["peak_mb"], 4000.0))
    return [CheckRow(figure, measured, limit, judge(measured, limit)) for figure, measured, limit in rows]


# --- report -------------------------------------------------------------------------------------------------


def progress(message):
    """Print progress on the standard error."""
    print(message, file=sys.stderr, flush=True)


def shown(value):
    """Return a cell of a table: four significant digits, powers of ten for small numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if value == 0 or np.isnan(value):
        return "0" if value == 0 else ""
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows):
    """Return the rows, which are dataclasses of one kind, as an aligned table in plain text that is Markdown too."""
    if not rows:
        return "(nothing was measured)"
    names = [field.name for field in fields(rows[0])]
    numeric = [any(isinstance(getattr(row, name), int | float) for row in rows) for name in names]
    cells = [[name.replace("_", " ") for name in names]]
    cells += [[shown(getattr(row, name)) for name in names] for row in rows]
    widths = [max(len(line[j]) for line in cells) for j in range(len(names))]

    def line(texts):
        parts = (t.rjust(w) if n else t.ljust(w) for t, w, n in zip(texts, widths, numeric, strict=True))
        return "| " + " | ".join(parts) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if n else "-") for w, n in zip(widths, numeric, strict=True)) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def environment():
    """Return what the figures depend on besides the code."""
    packages = ("ordinalq", "numpy", "scipy", "scikit-learn")
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
        **peer_versions(),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def report(sections, env):
    """Return the whole report as text; sections are (title, remark, rows)."""
    parts = ["# Benchmark", ", ".join(f"{key} {value}" for key, value in env.items()) + ". One core."]
    for title, remark, rows in sections:
        parts += [f"## {title}", remark, table(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def missing_peers():
    """Packages that cannot be imported."""
    return sorted({peer.package for peer in PEERS} - {peer.package for peer in available()})


def measure(options):
    """Measure everything; return sections (title, remark, rows) of the report."""
    if options.tiny:
        BUDGET.update(seconds=0.0, runs=1)
    n_first = 2 if options.tiny else 20 if options.quick else 100
    workload = make_workload(TINY_ITEMS) if options.tiny else make_workload()
    batches = [workload.samples(n, TINY_SIZE if options.tiny else SAMPLE_SIZE) for n in options.samples]
    methods, left_out = measure_methods(workload, batches)
    remark = (
        "Best of several runs, including the means over samples. Memory is the peak of tracemalloc during one call."
    )
    if left_out:
        remark += f" Not measured, because they do not accept precomputed scores: {', '.join(left_out)}."
    sections = [("Our methods", remark, methods)]
    missing = missing_peers()
    for package in missing:
        progress(f"{package} is not installed: left out.")
    if options.tiny:
        progress("peers are left out: they take minutes.")
    peers = [] if options.tiny else measure_peers(workload, batches[0], n_first)
    loops = measure_loops(workload, batches[0], n_first)
    compared = (
        f"Medians over the first {n_first} samples, solved one by one. ordinalq solves {len(batches[0])} samples at "
        "once, with the same parameters. The gap is the fraction of the possible decrease in loss that the alternative "
        f"misses. The minimum is the same if the gap is at most {SAME_EXCESS_CONVEX:g} ({SAME_EXCESS:g} for the "
        f"Hellinger distance) on {SAME_SHARE:.0%} of the samples. If nothing is minimized (CC, PCC, EM), the gap is "
        "the largest difference from our estimate."
    )
    if missing:
        compared += f" Not installed: {', '.join(missing)}."
    fastest = "The fastest alternative that finds the same minimum."
    bare = " Targets apply to methods, not to loops that call a package's quadratic solver with our M and q."
    sections += [
        ("Other packages", compared, peers),
        ("Ratios to other packages", fastest + bare, ratio_rows(peers, PEER_RATIOS)),
        ("Scipy loops", "One minimization per sample with analytic derivatives.", loops),
        ("Ratios to scipy loops", fastest, ratio_rows(loops, dict.fromkeys(LOOP_METHODS, LOOP_RATIO))),
    ]
    sizes = [(1000, SAMPLE_SIZE), (5000, SAMPLE_SIZE), (1000, 100), (1000, 10_000), (20_000, SAMPLE_SIZE)]
    growth = measure_scaling(workload, TINY_GROWTH if options.tiny else sizes[:4] if options.quick else sizes)
    sections.append(("Growth (OPACC)", "Time grows linearly with the number of samples and of items.", growth))
    n_large, n_pool = (100, 2000) if options.tiny else (10_000, 100_000) if options.quick else (100_000, 1_000_000)
    n_drawn = 100 if options.tiny else 5000
    sections.append(("Other limits", "", measure_checks(workload, n_drawn, n_large, n_pool)))
    return sections


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", default=None, help="numbers of samples, comma-separated (1000,5000)")
    parser.add_argument("--quick", action="store_true", help="fewer samples, a smaller large batch")
    parser.add_argument(
        "--tiny", action="store_true", help="everything but the peers in seconds; the figures say nothing"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--write", action="store_true", help=f"write the report to benchmarks/{RESULTS.name}")
    parser.add_argument("--large-batch", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    default = "4" if options.tiny else "500" if options.quick else "1000,5000"
    try:
        options.samples = [int(n) for n in (options.samples or default).split(",")]
    except ValueError:
        parser.error(f"--samples must be integers, comma-separated, got {options.samples}.")
    return options


def main(arguments=None):
    """Measure and report."""
    options = parse(arguments)
    if options.large_batch:
        print(json.dumps(large_batch(*options.large_batch)))
        return
    env = environment()
    sections = measure(options)
    env["load"] += " before, " + " ".join(f"{load:.1f}" for load in os.getloadavg()) + " after"
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        env["load"] += " (others worked on the machine, so that times are upper limits)"
    text = report(sections, env)
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")
    if options.json:
        figures = {title: [asdict(row) for row in rows] for title, _, rows in sections}
        Path(options.json).write_text(json.dumps({"environment": env, **figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
