"""Other people's class weights, for comparison: quapy's EMQ-BCTS, cvxpy's rlls, a plain inverse.

pip install -r benchmarks/peers.txt
"""

from __future__ import annotations

import numpy as np


def quapy_emq_bcts(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Target prior by quapy's EMQ with bias-corrected temperature scaling, over all classes."""
    from quapy.method.aggregative import EMQ
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Ready(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(p.shape[1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, x: np.ndarray, y: np.ndarray) -> Ready:
            return self

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            return x

    method = EMQ.EMQ_BCTS(Ready(), fit_classifier=False, val_split=5)
    method.aggregation_fit(p, y)
    return np.asarray(method.aggregate(q))


def confusion(
    p: np.ndarray, y: np.ndarray, q: np.ndarray, soft: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """C[a, y], the share of source rows predicted a with label y, and mu[a] of the target."""
    K = p.shape[1]
    if soft:
        order = np.argsort(y, kind="stable")
        there, start = np.unique(y[order], return_index=True)
        C = np.zeros((K, K))
        C[:, there] = np.add.reduceat(p[order], start, axis=0).T / len(y)
        return C, q.mean(axis=0)
    C = np.bincount(p.argmax(axis=1) * K + y, minlength=K * K).reshape(K, K) / len(y)
    return C, np.bincount(q.argmax(axis=1), minlength=K) / len(q)


def inverse(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Weights C^-1 mu with no bound, as the formula has it; classes the source lacks are 0."""
    C, mu = confusion(p, y, q)
    seen = C.sum(axis=0) > 0
    w = np.zeros(len(mu))
    try:
        w[seen] = np.linalg.solve(C[np.ix_(seen, seen)], mu[seen])
    except np.linalg.LinAlgError:
        w[:] = np.inf
    return w


def rlls_penalty(K: int, n: int, alpha: float = 0.01, delta: float = 0.05) -> float:
    log = np.log(2 * K / delta)
    return float(alpha * 3 * (2 * log / (3 * n) + np.sqrt(2 * log / n)))


def cvxpy_rlls(C: np.ndarray, mu: np.ndarray, n: int) -> np.ndarray:
    """Weights that minimise |C t - b| + penalty |t| over t >= -1, w = 1 + t."""
    import cvxpy

    t = cvxpy.Variable(len(mu))
    loss = cvxpy.norm(C @ t - (mu - C.sum(axis=1))) + rlls_penalty(len(mu), n) * cvxpy.norm(t)
    cvxpy.Problem(cvxpy.Minimize(loss), [t >= -1]).solve(solver=cvxpy.CLARABEL)
    return 1 + np.asarray(t.value)
