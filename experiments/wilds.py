"""Camelyon17, iWildCam and Amazon reviews, divided as the paper does, from the files of WILDS.

Koh et al. (2021) hand them out; the folder is the root_dir that was given to their package when it
downloaded. Images are found here and opened later.

    camelyon17_v1.0/metadata.csv, patches/patient_004_node_4/patch_patient_004_node_4_x_1_y_2.png
    iwildcam_v2.0/metadata.csv, categories.csv, train/*.jpg
    amazon_v2.1/reviews.csv, splits/user.csv
"""

from __future__ import annotations

import csv
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from calshift import resample_label_shift
from experiments.imagenet_lt import Parts, Rows, present

ADVICE = "name the root_dir to which the package wilds downloaded"
SHIFTED_CENTERS = (1, 2)  # hospitals that WILDS keeps apart, whatever the column split says
TRAIN, ID_VAL = 0, 1  # codes of Camelyon17
AMAZON = (0, 2, 4)  # codes of training, i.i.d. validation and test; 1 and 3 are other reviewers
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
MOST_FREQUENT = 20


def camelyon17(
    folder: Path, rng: np.random.Generator, source_ratio: float = 5.0, target_ratio: float = 1.0
) -> Parts:
    """Patches of lymph nodes; ratios are those of negatives to positives, after leaving some out.

    By the paper's appendix: the i.i.d. validation set is the target, and as many training rows are
    held out for the source, which keeps the same share of positives as what is trained on. (Its
    main text has it the other way round, with the target from the training set.)
    """
    home = folder / "camelyon17_v1.0"
    numbers = dict.fromkeys(("node", "x_coord", "y_coord", "tumor", "center", "split"), "int64")
    held = columns(home / "metadata.csv", {"patient": "string", **numbers})
    here = ~np.isin(held["center"], SHIFTED_CENTERS)
    rows = Rows(_patches(home, held), held["tumor"], ("normal", "tumor"))
    target = np.flatnonzero(here & (held["split"] == ID_VAL))
    training = rng.permutation(np.flatnonzero(here & (held["split"] == TRAIN)))
    training, source = np.split(training, [-len(target)])
    return Parts(
        at_ratio(rows.at(training), source_ratio, rng),
        at_ratio(rows.at(source), source_ratio, rng),
        at_ratio(rows.at(target), target_ratio, rng),
    ).with_images()


def iwildcam(folder: Path, rng: np.random.Generator) -> Parts:
    """Camera traps: the most frequent 20 classes of the i.i.d. test set, equally often.

    The model learns all classes; of the source, the i.i.d. validation set, only the rows of those
    20 remain, as the paper's 6003 of 7314 rows tell.
    """
    home = folder / "iwildcam_v2.0"
    held = columns(home / "metadata.csv", {"split": "string", "y": "int64", "filename": "string"})
    files = [str(home / "train" / name) for name in held["filename"].to_pylist()]
    rows = Rows(files, held["y"], _species(home, int(held["y"].max()) + 1))
    split = np.array(held["split"].to_pylist())
    training, source, test = (
        rows.at(np.flatnonzero(split == part)) for part in ("train", "id_val", "id_test")
    )
    counts = np.bincount(test.labels, minlength=len(rows.classes))
    frequent = np.argsort(-counts, kind="stable")[: min(MOST_FREQUENT, np.count_nonzero(counts))]
    source = source.at(np.flatnonzero(np.isin(source.labels, frequent)))
    return Parts(training, source, balanced(test, frequent, rng)).with_images()


def amazon(folder: Path, rng: np.random.Generator) -> Parts:
    """Reviews and their stars: the i.i.d. test set with each class as often as the rarest one."""
    home = folder / "amazon_v2.1"
    held = columns(home / "reviews.csv", {"reviewText": "string", "overall": "double"})
    split = columns(home / "splits" / "user.csv", {"split": "int64"})["split"]
    if len(split) != len(held["overall"]):
        msg = f"{home}: reviews.csv has {len(held['overall'])} rows, splits/user.csv {len(split)}"
        raise ValueError(msg)
    labels = held["overall"].astype(np.int64) - 1
    training, source, test = (
        Rows(held["reviewText"].filter(split == code).to_pylist(), labels[split == code], STARS)
        for code in AMAZON
    )
    return Parts(training, source, balanced(test, np.arange(len(STARS)), rng))


def at_ratio(rows: Rows, ratio: float, rng: np.random.Generator) -> Rows:
    """As many rows as have so many negatives for each positive, none of them twice."""
    prior = np.array([ratio, 1]) / (ratio + 1)
    return rows.at(resample_label_shift(rows.labels, prior=prior, rng=rng))


def balanced(rows: Rows, classes: np.ndarray, rng: np.random.Generator) -> Rows:
    """Only these classes, each as often as the rarest of them."""
    prior = np.zeros(len(rows.classes))
    prior[classes] = 1 / len(classes)
    return rows.at(resample_label_shift(rows.labels, prior=prior, rng=rng))


def columns(path: Path, types: dict[str, str]) -> dict[str, Any]:
    """Some columns of a CSV file, numbers as arrays; a text may have several lines."""
    arrow = needed("pyarrow.csv", "pyarrow")
    with present(path, ADVICE).open(encoding="utf-8", newline="") as file:
        head = next(csv.reader(file), [])
    absent = [name for name in types if name not in head]
    if absent:
        msg = f"{path} has no column {absent[0]!r} but {', '.join(map(repr, head))}; {ADVICE}"
        raise ValueError(msg)
    table = arrow.read_csv(
        path,
        parse_options=arrow.ParseOptions(newlines_in_values=True),
        convert_options=arrow.ConvertOptions(include_columns=list(types), column_types=types),
    )
    return {name: table[name] if kind == "string" else table[name].to_numpy()
            for name, kind in types.items()}  # fmt: skip


def needed(module: str, package: str) -> Any:
    """The module, or a message on what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"this needs {package} ({error}): pip install {package}"
        raise ImportError(msg) from error


def _patches(home: Path, held: dict[str, Any]) -> list[str]:
    where = (held["patient"].to_pylist(), held["node"], held["x_coord"], held["y_coord"])
    return [
        f"{home}/patches/patient_{patient}_node_{node}/"
        f"patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
        for patient, node, x, y in zip(*where, strict=True)
    ]


def _species(home: Path, K: int) -> tuple[str, ...]:
    """Names of the classes, or their numbers where the file of names is not there."""
    names = dict(enumerate(map(str, range(K))))
    if (home / "categories.csv").is_file():
        read = columns(home / "categories.csv", {"y": "int64", "name": "string"})
        names |= dict(zip(read["y"].tolist(), read["name"].to_pylist(), strict=True))
    return tuple(names[c] for c in range(K))
