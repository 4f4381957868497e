"""Accuracy and macro F1 from a contingency table of the target that is found by quantification.

LEAP and O-LEAP (Volpi, Moreo, Sebastiani, "LEAP: linear equations for classifier accuracy
prediction under prior probability shift") and QuAcc (the same authors), as functions like those of
metrics_peer_methods.py.
"""

from __future__ import annotations

import numpy as np
from metrics_peer_methods import Estimate, contingency_table, table_metrics
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import calshift

FEW = 5  # classes
FLOOR, LEAST = 1e-12, 1e-6  # of probabilities: in a likelihood, under a logarithm
STEPS, TOLERANCE = 1000, 1e-6  # of expectation maximisation


def leap(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """K^2 equations for the K^2 shares T_ca of true class c predicted as a.

    With r_ca the share predicted as a among source rows of class c, m_a that of the target
    predicted as a, and v the target prior of a quantifier, here em-bcts: sum T = 1, and without the
    first class

        T_ca = r_ca sum_b T_cb,    sum_c T_ca = m_a,    sum_a T_ca = v_c,

    in least squares over T >= 0; the first class takes up what the others leave. The sum of T is
    divided out at the end, where the authors bound it.
    """
    return table_metrics(solved_table(*equations(p, y, q), first=1))


def o_leap(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """The same with the equations of all classes, which are more than unknowns."""
    return table_metrics(solved_table(*equations(p, y, q), first=0))


def equations(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """r (NaN for a class that the source lacks), m and v."""
    prior = calshift.label_shift_weights(p, y, q, method="em-bcts").prior_target
    predicted = np.bincount(q.argmax(axis=1), minlength=q.shape[1]) / len(q)
    return class_rates(contingency_table(p, y)), predicted, prior


def class_rates(table: np.ndarray) -> np.ndarray:
    """Rows divided by their sums, NaN where that is 0."""
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)


def solved_table(r: np.ndarray, m: np.ndarray, v: np.ndarray, first: int) -> np.ndarray:
    """Least squares of the equations of `leap` without the first `first` classes."""
    K = len(m)
    kept = np.arange(K) >= first
    known = np.isfinite(r).all(axis=1)
    rates = np.where(known[:, None], r, m)  # a start for classes that the source lacks
    held = np.outer(kept & known, kept)

    def half_squares(x: np.ndarray) -> tuple[float, np.ndarray]:
        T = x.reshape(K, K)
        total = T.sum(axis=1)
        R = held * (T - rates * total[:, None])
        columns, rows = kept * (T.sum(axis=0) - m), kept * (total - v)
        whole = T.sum() - 1
        squares = (R**2).sum() + (columns**2).sum() + (rows**2).sum() + whole**2
        back = rows - (R * rates).sum(axis=1)
        return squares / 2, (R + columns + back[:, None] + whole).ravel()

    start = (rates * v[:, None]).ravel()
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 0.0, "gtol": 1e-9}
    bounds = [(0, None)] * (K * K)
    found = minimize(
        half_squares, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    T = np.asarray(found.x.reshape(K, K))
    return T / T.sum()


def quacc_by_prediction(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """QuAcc nxn: the true classes are quantified among the rows of each predicted class.

    T_ca = m_a v_c|a, where v_.|a are the `quantified_shares` of the target rows predicted as a, by
    the source rows predicted as a; 1 / K each if there are none.
    """
    K = p.shape[1]
    before, after = p.argmax(axis=1), q.argmax(axis=1)
    table = np.full((K, K), 1 / K)
    for a in np.intersect1d(before, after):
        given = before == a
        table[:, a] = quantified_shares(p[given], y[given], q[after == a], K)
    return table_metrics(table * np.bincount(after, minlength=K) / len(q))


def quacc_joint(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """QuAcc 1xn^2: `quantified_shares` of the K^2 pairs of true and predicted class as classes.

    Only for few classes: (NaN, NaN) for more than 5.
    """
    K = p.shape[1]
    if K > FEW:
        return np.nan, np.nan
    shares = quantified_shares(p, y * K + p.argmax(axis=1), q, K * K)
    return table_metrics(shares.reshape(K, K))


def quantified_shares(p: np.ndarray, labels: np.ndarray, q: np.ndarray, size: int) -> np.ndarray:
    """Shares of labels 0..size-1 in the target: SLD with a classifier trained on the source.

    Logistic regression of the labels on log probabilities (the authors' default is probabilities,
    with which both forms of QuAcc are less accurate here), then `maximised_shares`.
    """
    shares, seen = np.zeros(size), np.unique(labels)
    if len(seen) == 1:
        shares[seen] = 1
        return shares
    model = LogisticRegression(max_iter=2000).fit(centred_logs(p), labels)
    prior = np.bincount(labels, minlength=size)[seen] / len(labels)
    shares[seen] = maximised_shares(model.predict_proba(centred_logs(q)), prior)
    return shares


def centred_logs(p: np.ndarray) -> np.ndarray:
    """log p less its mean over the classes."""
    logs = np.log(np.maximum(p, LEAST))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def maximised_shares(p: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The v of largest sum_j log sum_c p_jc v_c / prior_c, by expectation maximisation."""
    ratio, v = np.maximum(p, FLOOR) / prior, prior
    for _ in range(STEPS):
        posterior = ratio * v
        before, v = v, (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(v - before).sum() < TOLERANCE:
            break
    return v
