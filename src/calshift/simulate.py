"""Label shift by resampling labelled data, and simulations whose true error is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from calshift._core.convert import softmax, to_numpy
from calshift._core.labels import encode_labels
from calshift._core.validate import (
    show,
    validate_choice,
    validate_integer,
    validate_number,
    validate_rng,
)
from calshift.errors import InvalidInput
from calshift.estimators.folded_normal import unfold


def resample_label_shift(
    y: Any,
    *,
    prior: Any = None,
    imbalance_factor: float | None = None,
    size: int | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Indices of rows, drawn without replacement, whose labels follow other class priors.

    Give ``prior`` (K class shares) or ``imbalance_factor`` IF, for a long tail with
    ``floor(n_max IF^(-c / (K - 1)))`` rows of class c. The largest possible number of rows is
    drawn, or ``size`` rows.

    Examples
    --------
    >>> import numpy as np, calshift
    >>> y = np.repeat(np.arange(10), 1000)
    >>> rows = calshift.resample_label_shift(y, imbalance_factor=10, rng=0)
    >>> np.bincount(y[rows])
    array([1000,  774,  599,  464,  359,  278,  215,  166,  129,  100])
    """
    if (prior is None) == (imbalance_factor is None):
        msg = "exactly one of prior and imbalance_factor must be given"
        raise InvalidInput(msg)
    if prior is None:
        labels = encode_labels(y, "y")
        share = _long_tail(imbalance_factor, int(labels.max()) + 1)
    else:
        share = _validate_prior(prior)
        labels = encode_labels(y, "y", len(share))
    K = len(share)
    counts = _class_counts(share, np.bincount(labels, minlength=K), size)
    rng = validate_rng(rng)
    chosen = [rng.choice(np.flatnonzero(labels == c), counts[c], replace=False) for c in range(K)]
    return np.asarray(rng.permutation(np.concatenate(chosen)))


def _long_tail(imbalance_factor: Any, K: int) -> np.ndarray:
    imbalance_factor = validate_number(imbalance_factor, "imbalance_factor", 1, 1e300)
    return np.asarray(float(imbalance_factor) ** (-np.arange(K) / max(K - 1, 1)))


def _validate_prior(prior: Any) -> np.ndarray:
    share = to_numpy(prior, "prior")[0]
    fine = share.ndim == 1 and share.size > 0 and share.dtype.kind in "fiu"
    if not (fine and (share >= 0).all() and abs(share.sum() - 1) <= 1e-6):
        msg = f"prior must be class shares that are not negative and sum to 1; got {show(prior)}"
        raise InvalidInput(msg)
    return np.asarray(share, dtype=float)


def _class_counts(share: np.ndarray, available: np.ndarray, size: int | None) -> np.ndarray:
    """Rows of each class: the most that the labels allow, or ``size`` in sum."""
    drawn = share > 0
    if (available[drawn] == 0).any():
        c = int(np.argmax(drawn & (available == 0)))
        msg = f"y must have rows of every class with a share in prior; it has none of class {c}"
        raise InvalidInput(msg)
    most = float(np.min(available[drawn] / share[drawn]))
    if size is None:
        return np.asarray(np.floor(most * share + 1e-9), dtype=int)
    size = validate_integer(size, "size", 1)
    exact = size * share / share.sum()
    counts = np.floor(exact + 1e-9).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: size - counts.sum()]] += 1
    if (counts > available).any():
        c = int(np.argmax(counts > available))
        msg = f"size must fit the labels: class {c} needs {counts[c]} rows and has {available[c]}"
        raise InvalidInput(msg)
    return np.asarray(counts)


LEAST, LARGEST = 1e-6, 1e6  # of the parameters of simulations
GROUP = 50  # rows averaged for the true error of a simulation


@dataclass(frozen=True)
class BetaSimulation:
    """The paper's simulation (its appendix A): binary scores, Beta distributed given the class.

    Scores are Beta(*positive) in class 1 and Beta(*negative) in class 0; only the share of class 1
    changes between source and target.

    Examples
    --------
    >>> from calshift.simulate import BetaSimulation
    >>> round(BetaSimulation().true_error(), 6)
    0.009517
    """

    prior_source: float = 0.25
    prior_target: float = 0.5
    positive: tuple[float, float] = (2.0, 1.0)
    negative: tuple[float, float] = (2.0, 5.0)

    def __post_init__(self) -> None:
        for name in ("prior_source", "prior_target"):
            validate_number(getattr(self, name), name, LEAST, 1 - LEAST)
        for name in ("positive", "negative"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                msg = f"{name} must be the two parameters of a Beta distribution; got {show(pair)}"
                raise InvalidInput(msg)
            for one in pair:
                validate_number(one, name, LEAST, LARGEST)

    @property
    def class_weights(self) -> np.ndarray:
        """The true weights of classes 0 and 1."""
        ratio = self.prior_target / self.prior_source
        return np.array([(1 - self.prior_target) / (1 - self.prior_source), ratio])

    def source(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """n source scores and labels."""
        return self._draw(n, self.prior_source, rng)

    def target(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """n target scores and labels."""
        return self._draw(n, self.prior_target, rng)

    def _draw(self, n: int, prior: float, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        n, rng = validate_integer(n, "n", 1), validate_rng(rng)
        y = (rng.random(n) < prior).astype(np.intp)
        p = np.where(y == 1, rng.beta(*self.positive, n), rng.beta(*self.negative, n))
        return p, y

    def true_error(self, norm: float = 2, domain: str = "target") -> float:
        """CE_p^p by integration over the score."""
        from scipy.integrate import quad
        from scipy.special import beta

        prior = self.prior_target if _validate_domain(domain) == "target" else self.prior_source

        def density(f: float, a: float, b: float) -> float:
            return float(f ** (a - 1) * (1 - f) ** (b - 1) / beta(a, b))

        def gap(f: float) -> float:
            one = prior * density(f, *self.positive)
            both = one + (1 - prior) * density(f, *self.negative)
            return float(abs(one / both - f) ** norm * both) if both > 0 else 0.0

        pieces = np.linspace(0, 1, 21)
        return float(sum(quad(gap, a, b, limit=200)[0] for a, b in pairwise(pieces)))


@dataclass(frozen=True)
class GaussianSimulation:
    """K unit Gaussians with random means, and the Bayes classifier of the source, distorted.

    Predictions are softmax(log posterior / temperature) under the source's prior: below 1 they
    are overconfident, above 1 underconfident, and at 1 calibrated on the source.

    Parameters
    ----------
    n_classes, dimensions, spread : means are drawn from N(0, spread^2) in that many dimensions
    imbalance : largest over smallest class share of the long-tailed side
    long_tail : "target" (the source is balanced) or "source"
    temperature : of the distortion
    seed : of the means

    Examples
    --------
    >>> from calshift.simulate import GaussianSimulation
    >>> p, y = GaussianSimulation(n_classes=3).source(5, rng=0)
    >>> p.shape, y.shape
    ((5, 3), (5,))
    """

    n_classes: int = 10
    imbalance: float = 10.0
    temperature: float = 0.6
    dimensions: int = 10
    spread: float = 1.0
    long_tail: str = "target"
    seed: int = 0

    def __post_init__(self) -> None:
        validate_integer(self.n_classes, "n_classes", 2)
        validate_integer(self.dimensions, "dimensions", 1)
        validate_number(self.imbalance, "imbalance", LEAST, LARGEST)
        validate_number(self.temperature, "temperature", LEAST, LARGEST)
        validate_number(self.spread, "spread", 0, LARGEST)
        validate_choice(self.long_tail, "long_tail", ("source", "target"))
        validate_rng(self.seed)

    @cached_property
    def means(self) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        return rng.normal(0, self.spread, (self.n_classes, self.dimensions))

    def prior(self, domain: str) -> np.ndarray:
        """Class shares of "source" or "target"."""
        if _validate_domain(domain) == self.long_tail:
            share = self.imbalance ** (-np.arange(self.n_classes) / (self.n_classes - 1))
            return np.asarray(share / share.sum())
        return np.full(self.n_classes, 1 / self.n_classes)

    @property
    def class_weights(self) -> np.ndarray:
        """The true weights."""
        return np.asarray(self.prior("target") / self.prior("source"))

    def source(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """n source predictions and labels."""
        return self._predicted(n, "source", rng)[:2]

    def target(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """n target predictions and labels."""
        return self._predicted(n, "target", rng)[:2]

    def draw(
        self, n: int, domain: str = "target", rng: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """n predictions, labels, and the true posteriors P(y | x) in that domain."""
        p, y, likelihood = self._predicted(n, domain, rng)
        return p, y, softmax(likelihood + np.log(self.prior(domain)))

    def _predicted(
        self, n: int, domain: str, rng: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predictions, labels, and log p(x | y) up to a constant."""
        n, rng = validate_integer(n, "n", 1), validate_rng(rng)
        y = rng.choice(self.n_classes, n, p=self.prior(domain))
        x = self.means[y] + rng.normal(size=(n, self.dimensions))
        likelihood = x @ self.means.T - (self.means**2).sum(axis=1) / 2
        p = softmax((likelihood + np.log(self.prior("source"))) / self.temperature)
        return p, y, likelihood

    def true_error(
        self, norm: float = 2, domain: str = "target", rows: int = 1_000_000, rng: Any = 0
    ) -> float:
        """Classwise CE_p^p from a large draw of exact posteriors instead of labels.

        Rows are sorted by score and cut in groups of 50, in which the mean of posterior - score is
        E[Y | f] - f up to noise, whose bias is subtracted. Groups must be small: with many classes
        few rows have a high score, and those vary widely.
        """
        if validate_integer(rows, "rows", 10_000) % 10_000:
            msg = f"rows must be a multiple of 10 000; got {rows}"
            raise InvalidInput(msg)
        rng = validate_rng(rng)
        blocks = [self.draw(10_000, domain, rng) for _ in range(rows // 10_000)]
        score = np.concatenate([p.astype(np.float32) for p, _, _ in blocks])
        gap = np.concatenate([(posterior - p).astype(np.float32) for p, _, posterior in blocks])
        errors = []
        for c in range(self.n_classes):
            groups = gap[np.argsort(score[:, c]), c].astype(float).reshape(-1, GROUP)
            mean, noise = groups.mean(axis=1), groups.var(axis=1, ddof=1) / GROUP
            errors.append(np.mean(unfold(mean, noise, norm)))
        return float(np.mean(errors))


def _validate_domain(domain: str) -> str:
    return str(validate_choice(domain, "domain", ("source", "target")))
