"""What benchmarks/run.py measures of others, in the environment of speed_peers.txt.

Each takes the classwise error of labelled predictions
with 15 bins, of equal mass where it has such, and no interval:
uncertainty-calibration: get_calibration_error, debiased L2 (root of the mean over classes)
netcal: ECE(15, equal_intervals=False) of each class against the rest; L1
torchmetrics: functional binary_calibration_error of each class against the rest; equal width, L1
scikit-learn: calibration_curve(strategy="quantile") of each class; mean of |true - predicted|
MAPIE: expected_calibration_error(classwise=True, split_strategy="quantile"); L1
and besides: torchmetrics' multiclass_calibration_error (top label) and binary_calibration_error of
scores, quapy's EMQ (class priors; it has no calibration error), and the authors' loop.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from speed_cases import Sample, mild_weights, predictions, scores
from speed_clock import Cases, Run, answer_requests

BINS = 15
Labelled = Callable[[np.ndarray, np.ndarray], float]


def uncertainty_calibration() -> Labelled:
    import calibration

    return lambda p, y: float(calibration.get_calibration_error(p, y, p=2, debias=True))


def netcal() -> Labelled:
    from netcal.metrics import ECE

    metric = ECE(BINS, equal_intervals=False)
    return lambda p, y: mean_over(
        p.shape[1], lambda c: metric.measure(p[:, c], (y == c).astype(int))
    )


def torchmetrics() -> Labelled:
    from torchmetrics.functional.classification import binary_calibration_error

    def error(p: np.ndarray, y: np.ndarray) -> float:
        q, labels = tensors(p, y)
        return mean_over(
            p.shape[1], lambda c: binary_calibration_error(q[:, c], (labels == c).int(), BINS)
        )

    return error


def top_label() -> Labelled:
    from torchmetrics.functional.classification import multiclass_calibration_error

    return lambda p, y: float(multiclass_calibration_error(*tensors(p, y), p.shape[1], BINS))


def binary() -> Labelled:
    from torchmetrics.functional.classification import binary_calibration_error

    return lambda p, y: float(binary_calibration_error(*tensors(p, y), BINS))


def scikit_learn() -> Labelled:
    from sklearn.calibration import calibration_curve

    def error(p: np.ndarray, y: np.ndarray) -> float:
        def of_class(c: int) -> float:
            true, predicted = calibration_curve(y == c, p[:, c], n_bins=BINS, strategy="quantile")
            return np.abs(true - predicted).mean()

        return mean_over(p.shape[1], of_class)

    return error


def mapie() -> Labelled:
    from mapie.metrics.calibration import expected_calibration_error

    return lambda p, y: expected_calibration_error(
        None, p, num_bins=BINS, split_strategy="quantile", classwise=True, class_labels=y
    )


def mean_over(K: int, error: Callable[[int], float]) -> float:
    return float(np.mean([float(error(c)) for c in range(K)]))


def tensors(*arrays: np.ndarray) -> list:
    import torch

    torch.set_num_threads(1)
    return [torch.from_numpy(array) for array in arrays]


def of_classes(n: int, K: int) -> Sample:
    return predictions(n, K, seed=1)


def of_scores(n: int, K: int) -> Sample:
    return scores(n, seed=1)


def on_labelled(
    load: Callable[[], Labelled], sample: Callable[[int, int], Sample] = of_classes
) -> Callable[[int, int], Run]:
    def case(n: int, K: int) -> Run:
        error, (p, y) = load(), sample(n, K)
        return lambda: error(p, y)

    return case


def quapy(n: int, K: int, tolerance: float = 1e-4) -> Run:
    """Relative to the mean prediction, as ours. The answer is the first class's target share."""
    from quapy.method.aggregative import EMQ

    p, y = predictions(n, K, seed=1)
    q, _ = predictions(n, K, seed=2)

    def share() -> float:
        method = EMQ(val_split=5, exact_train_prev=False)  # no classifier is fitted
        method.aggregation_fit(p, y)
        return float(method.aggregate(q, tolerance)[0])

    return share


def authors(n: int, K: int) -> Run:
    from authors_loop import authors_error

    p, y = predictions(n, K, seed=1)
    q, _ = predictions(n, K, seed=2)
    given = tensors(p, y, q, mild_weights(y, K))
    return lambda: authors_error(*given) ** 0.5


CASES: Cases = {
    "uncertainty-calibration": on_labelled(uncertainty_calibration),
    "netcal": on_labelled(netcal),
    "torchmetrics": on_labelled(torchmetrics),
    "scikit-learn": on_labelled(scikit_learn),
    "MAPIE": on_labelled(mapie),
    "top-label": on_labelled(top_label),
    "binary": on_labelled(binary, of_scores),
    "quapy": quapy,
    "quapy to 1e-8": lambda n, K: quapy(n, K, 1e-8),
    "authors": authors,
}

if __name__ == "__main__":
    answer_requests(CASES)
