"""Label shift made from labelled data, by resampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from calshift.checks import checked_generator, checked_whole, is_number, label_codes
from calshift.conversion import to_numpy
from calshift.errors import InvalidInput


def resample_label_shift(
    y: Any,
    *,
    prior: Any = None,
    imbalance_factor: float | None = None,
    size: int | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Indices of rows, drawn without replacement, whose labels follow another mix of classes.

    Give ``prior`` (K class shares) or ``imbalance_factor`` IF, which makes a long tail with
    ``floor(n_max IF^(-c / (K - 1)))`` rows of class c. As many rows as there are, unless ``size``
    asks for fewer.

    Examples
    --------
    >>> import numpy as np, calshift
    >>> y = np.repeat(np.arange(10), 1000)
    >>> rows = calshift.resample_label_shift(y, imbalance_factor=10, rng=0)
    >>> np.bincount(y[rows])
    array([1000,  774,  599,  464,  359,  278,  215,  166,  129,  100])
    """
    if (prior is None) == (imbalance_factor is None):
        msg = "give either prior or imbalance_factor"
        raise InvalidInput(msg)
    if prior is None:
        labels = label_codes(y, "y")
        share = _tail(imbalance_factor, int(labels.max()) + 1)
    else:
        share = _checked_prior(prior)
        labels = label_codes(y, "y", len(share))
    K = len(share)
    counts = _counts(share, np.bincount(labels, minlength=K), size)
    rng = checked_generator(rng)
    chosen = [rng.choice(np.flatnonzero(labels == c), counts[c], replace=False) for c in range(K)]
    return np.asarray(rng.permutation(np.concatenate(chosen)))


def _tail(imbalance_factor: Any, K: int) -> np.ndarray:
    if not is_number(imbalance_factor) or not 1 <= imbalance_factor < np.inf:
        msg = f"imbalance_factor must be a number of at least 1; got {imbalance_factor!r}"
        raise InvalidInput(msg)
    return np.asarray(float(imbalance_factor) ** (-np.arange(K) / max(K - 1, 1)))


def _checked_prior(prior: Any) -> np.ndarray:
    share = to_numpy(prior, "prior")[0]
    fine = share.ndim == 1 and share.size > 0 and share.dtype.kind in "fiu"
    if not (fine and (share >= 0).all() and abs(share.sum() - 1) <= 1e-6):
        msg = f"prior must be class shares that are not negative and sum to 1; got {prior!r}"
        raise InvalidInput(msg)
    return np.asarray(share, dtype=float)


def _counts(share: np.ndarray, available: np.ndarray, size: int | None) -> np.ndarray:
    """Rows of each class: the most the labels allow, or scaled to the size asked for."""
    asked = share > 0
    if (available[asked] == 0).any():
        c = int(np.argmax(asked & (available == 0)))
        msg = f"y must hold every class that is asked for; it lacks class {c}"
        raise InvalidInput(msg)
    most = float(np.min(available[asked] / share[asked]))
    if size is None:
        return np.asarray(np.floor(most * share + 1e-9), dtype=int)
    size = checked_whole(size, "size", 1)
    exact = size * share / share.sum()
    counts = np.floor(exact + 1e-9).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: size - counts.sum()]] += 1
    if (counts > available).any():
        c = int(np.argmax(counts > available))
        msg = f"size must fit the labels: class {c} needs {counts[c]} rows and has {available[c]}"
        raise InvalidInput(msg)
    return np.asarray(counts)
