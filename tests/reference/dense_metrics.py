"""Metrics on the target and their influence functions, with dense arrays over rows.

Every metric is a function of means of scores psi(x, y). A mean is

    theta = mean_j (b_j + sum_c v_jc psi_jc) + (1/n) sum_i w_i (psi_i - sum_c v_ic psi_ic)

with b the part that the prediction alone decides and psi(x, c) the rest, of which a part that the
label alone decides is averaged over the source rows' weights. Taken as given: the class weights
with their influence functions, and calibrated posterior class probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import calshift
from calshift.engines import Arrays
from calshift.metrics.efficient_shares import fit_shares

STEP = 1e-6  # of a central difference


@dataclass
class Mean:
    """A mean with the influence of source rows, target rows, and what is outside both."""

    value: float
    source: np.ndarray
    target: np.ndarray
    outside: np.ndarray

    @property
    def error(self) -> float:
        n, m = len(self.source), len(self.target)
        squares = np.sum(self.source**2) / n**2 + np.sum(self.target**2) / m**2
        return float(np.sqrt(squares + np.sum(self.outside**2)))


class Dense:
    """Both samples with weights, shares and the influence of rows on the weights."""

    def __init__(self, p: Any, y: Any, q: Any, weights: calshift.ClassWeights) -> None:
        self.p, self.y, self.q, self.K = p, y, q, p.shape[1]
        before, after = calshift.Predictions(p, y), calshift.Predictions(q)
        n, m = len(p), len(q)
        count = np.bincount(y, minlength=self.K)
        mean = count @ weights.values / n
        self.w = weights.values / mean
        self.prior = count / n * self.w
        shares = fit_shares(Arrays(before), self.w, m)
        self.v, self.v_target = (
            self._shares(shares.posterior(one), n / m) for one in (before, after)
        )
        self.phi = np.zeros((n, self.K)), np.zeros((m, self.K)), np.zeros((1, self.K))
        if weights.influence is not None:
            influence = weights.influence
            parts = influence.source(before), influence.target(after), influence.outside
            self.phi = tuple(np.asarray(one).reshape(-1, self.K) / mean for one in parts)

    def _shares(self, posterior: np.ndarray, ratio: float) -> np.ndarray:
        """v_c = rho_c w_c / (sum rho w + n / m), rho the posterior of the target."""
        rho = posterior * self.w
        rho /= rho.sum(axis=1, keepdims=True)
        return np.asarray(rho * self.w / ((rho @ self.w)[:, None] + ratio))

    def mean(
        self,
        score: Callable[[np.ndarray], np.ndarray],
        by_prediction: Callable[[np.ndarray], Any] = lambda p: 0.0,
        by_label: Any = 0.0,
    ) -> Mean:
        """Of score(p) (n, K) by label, plus parts by the prediction and by the label."""
        n, y = len(self.p), self.y
        by_label = np.broadcast_to(by_label, self.K)
        psi, psi_target = score(self.p), score(self.q)
        e = psi[np.arange(n), y] - np.sum(self.v * psi, axis=1) + by_label[y]
        a = np.sum(self.v_target * psi_target, axis=1) + by_prediction(self.q)
        W = self.w[y]
        E = np.sum(W * e) / n
        D = np.array([np.sum(e[y == c] - E) for c in range(self.K)]) / n
        phi, phi_target, outside = self.phi
        source, target = W * (e - E) + phi @ D, a - a.mean() + phi_target @ D
        return Mean(a.mean() + E, source, target, outside @ D)

    def function_of(self, parts: list[Mean], function: Callable[[np.ndarray], float]) -> Mean:
        """Of means, by the delta method with central differences."""
        at = np.array([one.value for one in parts])
        steps = STEP * np.eye(len(parts))
        slope = [(function(at + h) - function(at - h)) / (2 * STEP) for h in steps]
        source, target, outside = (
            sum(s * getattr(one, name) for s, one in zip(slope, parts, strict=True))
            for name in ("source", "target", "outside")
        )
        return Mean(function(at), source, target, outside)  # type: ignore[arg-type]

    def cells(self, predict: Callable[[np.ndarray], np.ndarray]) -> list[Mean]:
        """The confusion matrix, row by row: by predicted class, then by label.

        1{predicted = a} 1{label = c} is a product of two centred indicators and of parts that the
        predicted class or the label alone decide.
        """
        K, one = self.K, np.eye(self.K)
        share = np.bincount(predict(self.q), minlength=K) / len(self.q)
        found = []
        for a in range(K):
            for c in range(K):
                label = one[c]

                q = float(self.prior[c])

                def score(
                    p: np.ndarray, a: int = a, label: np.ndarray = label, q: float = q
                ) -> np.ndarray:
                    return np.outer((predict(p) == a) - share[a], label - q)

                def alone(p: np.ndarray, a: int = a, q: float = q) -> np.ndarray:
                    return np.asarray(((predict(p) == a) - share[a]) * q)

                found.append(self.mean(score, alone, label * share[a]))
        return found

    def average_bias(self, cells: list[Mean], name: str) -> float:
        """Of macro F1 or macro precision: the mean of (R Var(D) - Cov(N, D)) / (D^2 + Var(D))."""
        K, bias = self.K, []
        for k in range(K):

            def top(t: np.ndarray, k: int = k) -> float:
                return float((2 if name == "f1" else 1) * t.reshape(K, K)[k, k])

            def bottom(t: np.ndarray, k: int = k) -> float:
                table = t.reshape(K, K)
                actual = table[:, k].sum() if name == "f1" else 0.0
                return float(table[k].sum() + actual)

            N, D = self.function_of(cells, top), self.function_of(cells, bottom)
            n, m = len(self.p), len(self.q)
            joint = N.source @ D.source / n**2 + N.target @ D.target / m**2
            ratio = N.value / D.value
            spread = D.source @ D.source / n**2 + D.target @ D.target / m**2
            bias.append((ratio * spread - joint) / (D.value**2 + spread))
        return float(np.mean(bias))

    def area(self, k: int) -> Mean:
        """P(s > s') + P(s = s') / 2 of a row of class k and another, by pairs of source rows."""
        s, W, own = self.p[:, k], self.w[self.y], self.y == k
        q = W[own].sum() / W.sum()

        def above(t: np.ndarray, others: np.ndarray) -> np.ndarray:
            """(rows,) share of the others below t."""
            wins = (t[:, None] > s[others]) + 0.5 * (t[:, None] == s[others])
            return np.asarray(wins @ W[others] / W[others].sum())

        area = W[own] @ above(s[own], ~own) / W[own].sum()

        def score(p: np.ndarray) -> np.ndarray:
            psi = np.repeat(((1 - above(p[:, k], own) - area) / (1 - q))[:, None], self.K, axis=1)
            psi[:, k] = (above(p[:, k], ~own) - area) / q
            return psi

        found = self.mean(score)
        found.value += area
        return found
