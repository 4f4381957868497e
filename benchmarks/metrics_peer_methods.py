"""Other people's estimates of accuracy and macro F1 without target labels, from confidences.

Every method is a function of p, y (source) and q (target) that returns (accuracy, macro F1); F1 is
NaN for a method that estimates the accuracy alone. A contingency table has the shares of rows by
(true class, predicted class); the predicted class is the one of largest probability.
"""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

import calshift

NEGLIGIBLE = 1e-6  # share of rows, of a class that neither is nor is predicted
SEPARATED = 0.999  # area under the curve from which on scores are not calibrated
BINS = SPLITS = 10
Estimate = tuple[float, float]


def contingency_table(
    p: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """(K, K) shares of rows by true and predicted class; `weights` are of the true classes."""
    K = p.shape[1]
    counts = np.bincount(y * K + p.argmax(axis=1), minlength=K * K).reshape(K, K).astype(float)
    if weights is not None:
        counts *= weights[:, None]
    return np.asarray(counts / counts.sum())


def table_metrics(table: np.ndarray) -> Estimate:
    """Accuracy, and F1 = 2 T_cc / (T_c. + T_.c) averaged over the classes that occur."""
    hits, either = np.diagonal(table), table.sum(axis=0) + table.sum(axis=1)
    occurs = either > NEGLIGIBLE
    return float(hits.sum() / table.sum()), float(np.mean(2 * hits[occurs] / either[occurs]))


def source(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """The metrics of the source as they are."""
    return table_metrics(contingency_table(p, y))


def reweighted(p: np.ndarray, y: np.ndarray, q: np.ndarray, method: str = "auto") -> Estimate:
    """Those of the source with class weights; a class without source rows has none."""
    found = calshift.label_shift_weights(p, y, q, method=method)
    return table_metrics(contingency_table(p, y, np.nan_to_num(found.values)))


def cbpe(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """Confidence-based performance estimation, as in the package NannyML.

    Let g_c be the isotonic regression of 1[y = c] on p_c, or the identity if `needs_calibration`
    says no, and e_jc = g_c(q_jc) / sum_k g_k(q_jk), 1 / K if that sum is 0. The expected table is
    T_ca = mean_j e_jc 1[row j is predicted as a]: the accuracy is the mean of e of the predicted
    class.
    """
    e = calibrated_by_class(p, y, q)
    predicted = np.eye(q.shape[1])[q.argmax(axis=1)]
    return table_metrics(e.T @ predicted / len(q))


def calibrated_by_class(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Calibrated probabilities of the target, renormalised."""
    K = p.shape[1]
    if K == 2:
        e = calibrated_scores(p[:, 1], y == 1, q[:, 1])
        return np.column_stack([1 - e, e])
    e = np.column_stack([calibrated_scores(p[:, c], y == c, q[:, c]) for c in range(K)])
    total = e.sum(axis=1, keepdims=True)
    return np.divide(e, total, out=np.full_like(e, 1 / K), where=total > 0)


def calibrated_scores(scores: np.ndarray, labels: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Isotonic regression, where it is of use."""
    if not needs_calibration(scores, labels):
        return target
    return isotonic(scores, labels, target)


def isotonic(scores: np.ndarray, labels: np.ndarray, target: np.ndarray) -> np.ndarray:
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    return np.asarray(fitted.predict(target))


def needs_calibration(scores: np.ndarray, labels: np.ndarray) -> bool:
    """Whether isotonic regression lowers the calibration error of rows held out.

    No if the scores separate the labels; else 10 random tenths are calibrated on the other rows,
    and their errors, in 10 bins of equally many rows, are compared.
    """
    if min(labels.sum(), (~labels).sum()) < 2 or roc_auc_score(labels, scores) > SEPARATED:
        return False
    splits = StratifiedShuffleSplit(SPLITS, test_size=0.1, random_state=42)
    before, after, truth = [], [], []
    for train, test in splits.split(scores, labels):
        before.append(scores[test])
        after.append(isotonic(scores[train], labels[train], scores[test]))
        truth.append(labels[test])
    observed = np.concatenate(truth)
    errors = [expected_error(np.concatenate(one), observed) for one in (before, after)]
    return errors[0] > errors[1]


def expected_error(scores: np.ndarray, labels: np.ndarray) -> float:
    """sum_b n_b / n |mean score - frequency| over bins of equally many rows."""
    order = np.argsort(scores)
    gaps = (scores - labels)[order]
    return float(sum(abs(part.sum()) for part in np.array_split(gaps, BINS)) / len(gaps))


def confidence(p: np.ndarray) -> np.ndarray:
    """max_c p_c."""
    return np.asarray(p.max(axis=1))


def negative_entropy(p: np.ndarray) -> np.ndarray:
    """sum_c p_c log p_c."""
    return np.asarray((p * np.log(np.maximum(p, 1e-300))).sum(axis=1))


def thresholded(scores: np.ndarray, right: np.ndarray, target: np.ndarray) -> float:
    """Share of `target` at or above the t with mean 1[scores < t] = share of wrong rows."""
    wrong = min(int((~right).sum()), len(scores) - 1)
    return float(np.mean(target >= np.sort(scores)[wrong]))


def atc(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """Average thresholded confidence with negative entropies, after temperature scaling."""
    p, q = tempered(p, y, q)
    right = p.argmax(axis=1) == y
    return thresholded(negative_entropy(p), right, negative_entropy(q)), np.nan


def atc_confidence(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """The same with the largest probabilities."""
    p, q = tempered(p, y, q)
    return thresholded(confidence(p), p.argmax(axis=1) == y, confidence(q)), np.nan


def doc(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Estimate:
    """Difference of confidences: source accuracy - (mean max p - mean max q), after scaling."""
    p, q = tempered(p, y, q)
    right = p.argmax(axis=1) == y
    return float(right.mean() - (confidence(p).mean() - confidence(q).mean())), np.nan


def tempered(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and q at the temperature of least log loss on the source."""
    fitted = calshift.TemperatureScaling().fit(p, y)
    return fitted.transform(p), fitted.transform(q)
