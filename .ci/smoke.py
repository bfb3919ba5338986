"""A package that was installed from a wheel works, away from the source tree: fit, estimate, save, the command line."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

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
listed = subprocess.run(
    [sys.executable, "-m", "ordinalq", "methods"], capture_output=True, text=True, check=True
).stdout
assert all(entry.name in listed for entry in oq.catalog())
assert "site-packages" in oq.__file__, f"this is the source tree: {oq.__file__}"
print(f"ordinalq {oq.__version__} works, installed in {Path(oq.__file__).parent}")
