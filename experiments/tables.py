"""Train on tables that anyone can install and save predictions: many, or very unequal, classes.

    python -m experiments tables [--folder DIR] [--data shuttle letter] [--seed 0] [--results DIR]

They stand for the paper's iWildCam. Shuttle keeps its natural mix and the classes that have rows
enough for a uniform target; Letter, whose classes are nearly equal, gets a long tail of imbalance
10. Both are divided as texts are (experiments/texts.py). The files are those of R's package
mlbench, read with pyreadr; a csv with a header or an npz with x and y, of the same name, will do.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.saved import PREDICTIONS, Pair, save
from experiments.texts import LEAST, divided, division, frequent, log_probabilities

MLBENCH = Path("/usr/lib/R/site-library/mlbench/data")
GET = (
    "apt-get install r-cran-mlbench; or, without R, apt-get download r-cran-mlbench && "
    "dpkg-deb -x r-cran-mlbench_*.deb DIR && --folder DIR/usr/lib/R/site-library/mlbench/data"
)
HIDDEN, RATE, EPOCHS = (100,), 0.003, 200  # on Letter's source 5 points too confident


@dataclass(frozen=True)
class Study:
    """A table: its file, the column of classes, shares held out and learnt from, the tail."""

    file: str
    label: str
    held: float
    imbalance: float | None
    learnt: float


STUDIES = {
    "shuttle": Study("Shuttle", "Class", 1 / 2, None, 1 / 20),  # easy: more would leave no errors
    "letter": Study("LetterRecognition", "lettr", 1 / 3, 10.0, 1 / 2),
}


def main(arguments: list[str]) -> None:
    asked = _parser().parse_args(arguments)
    for name in asked.data:
        run(name, asked.folder, asked.seed, asked.results)


def run(name: str, folder: Path, seed: int, results: Path) -> Pair:
    """Read, divide, train, and write the predictions on source and target."""
    study = STUDIES[name]
    x, names = different(*table(folder, study))
    kept, labels, classes = frequent(names, LEAST)
    x = x[kept]
    rng = np.random.default_rng(seed)
    training, source, target = divided(labels, study.held, study.imbalance, rng, study.learnt)
    model = trained(x[training], labels[training], seed)
    found = [(log_probabilities(model, x[rows]), labels[rows]) for rows in (source, target)]
    tail = f"-lt{study.imbalance:g}" if study.imbalance else ""
    settings = {**origin(study, seed), "training_rows": len(training)}
    return save(results / f"{name}{tail}-mlp.npz", found[0], found[1], classes, settings)


def origin(study: Study, seed: int) -> dict[str, Any]:
    """What the saved file tells about itself."""
    import sklearn

    model = f"scaled columns, MLPClassifier{HIDDEN}, no penalty, {EPOCHS} epochs, rate {RATE}"
    return {
        "data": f"{study.file} (UCI), as in mlbench 2.1-3",
        "licence": "CC BY 4.0 at UCI, GPL-2 in mlbench",
        "split": division(study.held, study.imbalance, study.learnt),
        "seed": seed,
        "model": f"{model}, scikit-learn {sklearn.__version__}",
    }


def table(folder: Path, study: Study) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (rows, columns) and the name of each row's class, from the file that is there."""
    for ending, read in {".rda": from_r, ".npz": from_npz, ".csv": from_csv}.items():
        path = folder / f"{study.file}{ending}"
        if path.exists():
            return read(path, study.label)
    msg = f"no {study.file}.rda, .npz or .csv in {folder}: {GET}"
    raise FileNotFoundError(msg)


def from_r(path: Path, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The one frame in an rda file."""
    try:
        import pyreadr
    except ModuleNotFoundError as error:
        msg = f"{path} is read with pyreadr, which is not installed: pip install pyreadr"
        raise ModuleNotFoundError(msg) from error
    (frame,) = pyreadr.read_r(path).values()
    return frame.drop(columns=label).to_numpy(float), frame[label].to_numpy(str)


def from_npz(path: Path, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Arrays x and y; there the label goes without a name."""
    with np.load(path, allow_pickle=False) as file:
        return file["x"].astype(float), file["y"].astype(str)


def from_csv(path: Path, label: str) -> tuple[np.ndarray, np.ndarray]:
    """All columns but the label's are numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    if label not in head:
        msg = f"{path} has no column {label!r}, only {', '.join(head)}"
        raise ValueError(msg)
    at = head.index(label)
    numbers = np.array([[*row[:at], *row[at + 1 :]] for row in rows], float)
    return numbers, np.array([row[at] for row in rows])


def different(x: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of equal rows the first, or training and evaluation might share them."""
    first = np.sort(np.unique(x, axis=0, return_index=True)[1])
    return x[first], names[first]


def trained(x: np.ndarray, labels: np.ndarray, seed: int) -> Any:
    """A network without penalty, trained for long: as overconfident as large ones are."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(
        HIDDEN, alpha=0.0, learning_rate_init=RATE, max_iter=EPOCHS, random_state=seed
    )
    return fitted(make_pipeline(StandardScaler(), network), x, labels)


def fitted(model: Any, x: np.ndarray, labels: np.ndarray) -> Any:
    """The model after its epochs; that it stops before it converged is meant."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, labels)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments tables")
    parser.add_argument("--folder", type=Path, default=MLBENCH, help="with the tables' files")
    parser.add_argument("--data", nargs="+", choices=tuple(STUDIES), default=list(STUDIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=PREDICTIONS)
    return parser
