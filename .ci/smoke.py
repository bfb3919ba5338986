"""Check a wheel of ordinalq[all]: fit, estimate, save, the command line."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import ordinalq as oq

rng = np.random.default_rng(0)
stars = rng.choice([1, 2, 3, 4, 5], size=1000)
X = stars[:, None] - 3 + rng.normal(size=(1000, 3))
q = oq.PACC().fit(X, stars)
estimates = q.predict_groups(X, stars > 3, level=0.9)
assert estimates.prevalences[0, :3].sum() > 0.8 > 0.2 > estimates.prevalences[1, :3].sum(), estimates
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "stars.oq"
    oq.save_model(q, path)
    assert np.array_equal(oq.load_model(path).predict(X), q.predict(X))


def ordinalq(*arguments: str, cwd: str | None = None) -> str:
    """Return what a command prints."""
    call = [sys.executable, "-m", "ordinalq", *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=True, cwd=cwd).stdout


listed = ordinalq("methods")
assert all(entry.name in listed for entry in oq.catalog())
with tempfile.TemporaryDirectory() as folder:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(stars=stars, shop=np.where(stars > 3, "east", "west"))
    table.to_csv(Path(folder) / "rows.csv", index=False)
    features = ("--features", "a,b,c")
    ordinalq("fit", "rows.csv", "--target", "stars", *features, "--budget", "fast", "--out", "stars.oq", cwd=folder)
    told = ordinalq("predict", "stars.oq", "rows.csv", "--by", "shop", "--plot", "a.svg", cwd=folder)
    assert "east" in told
    assert (Path(folder) / "a.svg").stat().st_size > 1000
assert "site-packages" in oq.__file__, f"this is the source tree: {oq.__file__}"
print(f"ordinalq {oq.__version__} works, installed in {Path(oq.__file__).parent}")
