"""Metrics without labels, against dense arrays over rows. (docs/mathematics.md 15)"""

from __future__ import annotations

import numpy as np
import pytest
from dense_metrics import Dense, Mean

import calshift

GIVEN = {2: [1.4, 0.6], 3: [1.5, 0.95, 0.55]}
WAYS = ("given", "em", "bbse-soft", "auto")
COST = {2: [[0.0, 9.0], [1.0, 0.5]], 3: [[0, 4, 1], [2, 0, 7], [1, 1, -1]]}


def argmax(p):
    return p.argmax(axis=1)


def log_scores(p):
    return -np.log(np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps))


def f1(table, k):
    return 2 * table[k, k] / (table[k].sum() + table[:, k].sum())


def correlation(table):
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    free = (1 - rows @ rows) * (1 - columns @ columns)
    return (np.trace(table) - rows @ columns) / np.sqrt(free)


def kappa(table):
    chance = table.sum(axis=1) @ table.sum(axis=0)
    return (np.trace(table) - chance) / (1 - chance)


def counted(K):
    """Functions of the confusion matrix, by predicted class and label."""
    every = range(K)
    recall = [lambda t, k=k: t[k, k] / t[:, k].sum() for k in every]
    precision = [lambda t, k=k: t[k, k] / t[k].sum() for k in every]
    prior = [lambda t, k=k: t[:, k].sum() for k in every]
    return {
        "f1_macro": lambda t: np.mean([f1(t, k) for k in every]),
        "f1_weighted": lambda t: sum(f1(t, k) * prior[k](t) for k in every),
        "precision_weighted": lambda t: sum(precision[k](t) * prior[k](t) for k in every),
        "precision_macro": lambda t: np.mean([precision[k](t) for k in every]),
        "recall_micro": np.trace,
        "recall[1]": recall[1],
        "precision[0]": precision[0],
        "specificity[1]": lambda t: 1 - (t[1].sum() - t[1, 1]) / (1 - t[:, 1].sum()),
        "npv[1]": lambda t: 1 - (t[:, 1].sum() - t[1, 1]) / (1 - t[1].sum()),
        "balanced_accuracy": lambda t: np.mean([recall[k](t) for k in every]),
        "matthews_corrcoef": correlation,
        "cohen_kappa": kappa,
    }


CLOSE = {"f1_macro": 1e-7, "precision_macro": 1e-7}  # less a bias by numerical differences


def expected(dense: Dense, predict=argmax) -> dict[str, Mean]:
    """Every metric by name."""
    K = dense.K
    factor, cost = 0.5 if K == 2 else 1.0, np.array(COST[K], dtype=float)
    cells = dense.cells(predict)

    def of_table(function):
        return dense.function_of(cells, lambda values: function(values.reshape(K, K)))

    found = {
        "log_loss": dense.mean(log_scores),
        "brier_score": dense.mean(
            lambda p: -2 * factor * p, lambda p: factor * (1 + np.sum(p**2, axis=1))
        ),
        "accuracy": of_table(np.trace),
        "expected_cost": of_table(lambda t: np.sum(t * cost)),
        "own": dense.mean(lambda p: p**3),
    }
    for k in range(K):
        parts = [dense.mean(np.zeros_like, by_label=np.eye(K)[k])]
        parts.append(dense.mean(np.zeros_like, lambda p, k=k: p[:, k]))
        found[f"oe_ratio[{k}]"] = dense.function_of(parts, lambda value: value[0] / value[1])
    areas = [dense.area(k) for k in range(K)]
    found |= {f"roc_auc[{k}]": one for k, one in enumerate(areas)}
    found["roc_auc_ovr"] = dense.function_of(areas, np.mean)
    found |= {name: of_table(function) for name, function in counted(K).items()}
    for name in {"f1_macro", "precision_macro"} & set(found):
        found[name].value -= dense.average_bias(cells, name.removesuffix("_macro"))
    return found


def sample(K, seed=3):
    """At least 50 source rows of every class, beyond which the error has nothing added to it."""
    simulation = calshift.simulate.GaussianSimulation(K, imbalance=3, dimensions=2, spread=1.5)
    p, y = simulation.source(600, rng=[seed, 0])
    q, _ = simulation.target(400, rng=[seed, 1])
    assert np.bincount(y).min() >= 50
    return p, y, q


def own(p, y):
    return p[np.arange(len(y)), y] ** 3


def names_of(reference):
    return [{"own": own} if name == "own" else name for name in reference]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_estimates_and_standard_errors(K, way):
    p, y, q = sample(K)
    weights = GIVEN[K] if way == "given" else way
    used = calshift.label_shift_weights(p, y, q, method=way) if way != "given" else None
    if used is None:
        used = calshift.target_metrics(p, y, q, weights=weights, check=False).class_weights
    reference = expected(Dense(p, y, q, used))
    found = calshift.target_metrics(
        p, y, q, metrics=names_of(reference), weights=weights, check=False, cost=COST[K]
    )
    for name, one in reference.items():
        assert found[name].estimate == pytest.approx(one.value, rel=CLOSE.get(name, 1e-9)), name
        assert found[name].standard_error == pytest.approx(one.error, rel=1e-5), name


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_another_decision():
    p, y, q = sample(2)
    weights = calshift.label_shift_weights(p, y, q, method="em")
    reference = expected(Dense(p, y, q, weights), lambda p: (p[:, 1] >= 0.2).astype(int))
    found = calshift.target_metrics(
        p, y, q, metrics=names_of(reference), weights="em", check=False, cost=COST[2], decision=0.2
    )
    for name, one in reference.items():
        assert found[name].estimate == pytest.approx(one.value, rel=CLOSE.get(name, 1e-9)), name
        assert found[name].standard_error == pytest.approx(one.error, rel=1e-5), name


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_margins_are_those_of_target_rows_and_class_weights(K):
    p, y, q = sample(K)
    result = calshift.target_metrics(
        p, y, q, metrics=["prevalence", "alarm_rate"], positive=1, check=False
    )
    prior, predicted = result.class_weights.prior_target, np.bincount(argmax(q), minlength=K)
    assert result["prevalence"].estimate == pytest.approx(prior[1], abs=1e-12)
    error = result.class_weights.standard_error
    assert result["prevalence"].standard_error == pytest.approx(error[1], rel=1e-6)
    share = predicted[1] / len(q)
    assert result["alarm_rate"].estimate == pytest.approx(share, abs=1e-12)
    variance = share * (1 - share) / len(q)
    assert result["alarm_rate"].standard_error == pytest.approx(variance**0.5, rel=1e-9)
    assert result.confusion.sum(axis=1) == pytest.approx(predicted / len(q), abs=1e-12)
    assert result.confusion.sum(axis=0) == pytest.approx(prior, abs=1e-12)


@pytest.mark.filterwarnings("ignore::calshift.UnreliableWeights")
def test_the_error_of_the_difference_uses_the_rows_that_both_share():
    """Influence on the source's accuracy: hit - mean; the covariance is over source rows."""
    p, y, q = sample(3)
    result = calshift.target_metrics(p, y, q, metrics="accuracy", weights="em", check=False)
    dense = Dense(p, y, q, result.class_weights)
    after = dense.function_of(dense.cells(argmax), lambda values: np.trace(values.reshape(3, 3)))
    hit = (argmax(p) == y).astype(float)
    after.source -= hit - hit.mean()
    one = result["accuracy"]
    assert one.source == pytest.approx(hit.mean(), abs=1e-12)
    assert one._difference_error == pytest.approx(after.error, rel=1e-5)
