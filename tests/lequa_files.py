"""Made files in the published format of LeQua 2024, task T3."""

import zipfile

import numpy as np
import pandas as pd

N_CLASSES = 5


def csv_of(table, first=()):
    """Return numbers (N, d) below the header of the published files."""
    names = [*first, *map(str, range(table.shape[1] - len(first)))]
    return pd.DataFrame(table, columns=names).to_csv(index=False, lineterminator="\n")


def labelled(table, head, name):
    return csv_of(np.column_stack([head, table]), (name,)).replace(".0,", ",")


def texts(rng, n_train=400, n_dev=20, n_test=30, size=40, d=6):
    """Yield path and text of the published files; the classes are distinct along the first feature."""
    centres = np.zeros((N_CLASSES, d))
    centres[:, 0] = 3 * np.arange(N_CLASSES)

    def vectors(y):
        return centres[y] + rng.normal(size=(len(y), d))

    y = np.resize(np.arange(N_CLASSES), n_train)
    yield "training_data.txt", labelled(vectors(y), y, "label")
    yield (
        "label_map.txt",
        "".join(f"{name} {code}\n" for code, name in enumerate(("one", "two", "three", "four", "five"))),
    )
    for pool, n_samples in (("dev", n_dev), ("test", n_test)):
        counts = rng.multinomial(size, rng.dirichlet(np.ones(N_CLASSES), n_samples))
        yield f"{pool}_prevalences.txt", labelled(counts / size, np.arange(n_samples), "id")
        for number, row in enumerate(counts):
            yield f"{pool}_samples/{number}.txt", csv_of(vectors(rng.permutation(np.repeat(np.arange(N_CLASSES), row))))


def write_folder(folder, files):
    for name, text in files:
        path = folder / "T3" / "public" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def write_archives(folder, files):
    """Write the three published archives, compressed."""
    with (
        zipfile.ZipFile(folder / "T3.train_dev.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as train_dev,
        zipfile.ZipFile(folder / "T3.test.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as test,
        zipfile.ZipFile(folder / "T3.test_prevalences.zip", "w", zipfile.ZIP_DEFLATED) as truth,
    ):
        for name, text in files:
            archive = truth if name == "test_prevalences.txt" else test if name.startswith("test") else train_dev
            archive.writestr(f"T3/public/{name}", text)
