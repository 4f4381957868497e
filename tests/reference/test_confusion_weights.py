"""bbse and rlls against a general convex solver and all active sets. (docs/mathematics.md 7)"""

from __future__ import annotations

import warnings
from itertools import chain, combinations

import numpy as np
import pytest

from calshift import Predictions
from calshift.engines import Arrays
from calshift.weights import estimate_weights

SIZES = (2, 10, 100)
TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
BOTH = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
EVERY_SIZE = pytest.mark.parametrize("K", SIZES)


def drawn(seed, prior, n, sharpness):
    """n labels of that prior, and softmax(sharpness 1_y + noise)."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(prior), n, p=prior)
    logits = sharpness * np.eye(len(prior))[y] + rng.normal(size=(n, len(prior)))
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), y


def tilted(K, ratio):
    """Class shares that fall by that ratio from the first class to the last."""
    share = float(ratio) ** -np.linspace(0, 1, K)
    return share / share.sum()


def counted(K, skill, n=8000):
    """Rows with C[a, y] = pi_y [ (1 - s_y) / K + s_y 1(a = y) ], s the skill, and mu = C w exactly.

    Rows with weights: p is .8 1_a + .2 / K, so that the soft confusion has .8 of the contrast of
    the hard one; w alternates between .6 and 1.4, but for a factor.
    """
    pi, w = tilted(K, 2), np.where(np.arange(K) % 2, 1.4, 0.6)
    C = pi * ((1 - skill) / K + np.diag(skill))
    rows, predicted = 0.8 * np.eye(K) + 0.2 / K, np.repeat(np.arange(K), K)
    y = np.tile(np.arange(K), K)
    source = Predictions(rows[predicted], y, sample_weight=n * C.ravel())
    return source, Predictions(rows, sample_weight=C @ w / (pi @ w))


def pair(source, target):
    return Predictions(*source), Predictions(target[0])


def found(method, soft, source, target):
    name = method + ("-soft" if soft else "")
    return estimate_weights(name, Arrays(source), Arrays(target)).values


def system(source, target, soft):
    """C[a, y], mu[a] and pi[y], row by row; columns only of labels that the source shows."""
    K = source.n_classes
    vote = (lambda row: row) if soft else (lambda row: np.eye(K)[row.argmax()])
    C, mu = np.zeros((K, K)), np.zeros(K)
    for row, label, weight in zip(source.p, source.y, source.frequency, strict=True):
        C[:, label] += weight * vote(row)
    for row, weight in zip(target.p, target.frequency, strict=True):
        mu += weight * vote(row)
    pi = np.bincount(source.y, source.frequency, K)
    n, m, seen = pi.sum(), target.frequency.sum(), pi > 0
    return C[:, seen] / n, mu / m, pi[seen] / n


def solve(problem):
    """With all the precision there is: at the last digits the solver may say that it is stuck."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.solve(**TIGHT)


# --- rlls: min |C t - b| + alpha rho |t|, t >= -1 -----------------------------------------------


def penalty(K, n):
    """alpha rho with alpha = .01, d = .05, rho = 3 (2 ln(2K/d) / 3n + sqrt(2 ln(2K/d) / n))."""
    log = np.log(2 * K / 0.05)
    return 0.01 * 3 * (2 * log / (3 * n) + np.sqrt(2 * log / n))


def check_rlls(soft, source, target):
    """The weights and those of bbse, once they are seen to be what the convex solver finds."""
    import cvxpy as cp

    C, mu, _ = system(source, target, soft)
    b, strength = mu - C.sum(axis=1), penalty(len(C), source.frequency.sum())

    def objective(t):
        return np.linalg.norm(C @ t - b) + strength * np.linalg.norm(t)

    t, unit = cp.Variable(C.shape[1]), np.linalg.norm(b)
    goal = cp.norm((C @ t - b) / unit) + strength / unit * cp.norm(t)
    solve(cp.Problem(cp.Minimize(goal), [t >= -1]))
    best = objective(np.maximum(t.value, -1))
    w, exact = (found(method, soft, source, target) for method in ("rlls", "bbse"))
    mine = w[~np.isnan(w)]
    assert mine.min() >= 0
    assert objective(mine - 1) == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(mine, 1 + t.value, atol=1e-4)
    return w, exact


# For `counted` C'b = pi s b: with pi near 1 / K, the penalty outweighs the evidence of a class
# whose skill s is below K times the penalty, divided by .8 if soft.


@BOTH
@EVERY_SIZE
def test_rlls_leaves_every_weight_at_one_where_the_penalty_outweighs_the_evidence(K, soft):
    skill = K * penalty(K, 8000) * np.linspace(0.2, 0.5, K)
    w, exact = check_rlls(soft, *counted(K, skill))
    assert np.all(w == 1)
    assert np.abs(exact - 1).min() > 0.3


@BOTH
@EVERY_SIZE
def test_rlls_is_bbse_where_the_penalty_is_too_small_to_pay(K, soft):
    w, exact = check_rlls(soft, *counted(K, np.linspace(0.6, 0.9, K)))
    np.testing.assert_allclose(w, exact, rtol=1e-9)
    assert np.abs(w - 1).min() > 0.3


@BOTH
@EVERY_SIZE
def test_rlls_shrinks_between_the_two(K, soft):
    if K == 2:  # b can only be (1, -1), which leaves little room between the two
        sample = pair(drawn(20, tilted(2, 2), 60, 0.1), drawn(1020, tilted(2, 0.5), 60, 0.1))
    else:
        sample = counted(K, K * penalty(K, 8000) * np.geomspace(0.2, 4, K))
    w, exact = check_rlls(soft, *sample)
    assert w.min() > 0
    assert 0.01 < np.linalg.norm(w - 1) < 0.9 * np.linalg.norm(exact - 1)


@BOTH
@EVERY_SIZE
def test_rlls_with_classes_at_the_bound(K, soft):
    # half the classes have left the target, and the predictor became sharper than it was
    prior = np.where(np.arange(K) < K // 2, 2 / K, 0.0)
    w, _ = check_rlls(soft, *pair(drawn(7, tilted(K, 2), 3000, 4), drawn(8, prior, 1000, 5)))
    assert np.any(w == 0)
    assert np.any(w > 1)


@BOTH
def test_rlls_where_the_source_lacks_a_class(soft):
    p, y = drawn(9, tilted(5, 2), 1500, 2)
    target = drawn(10, tilted(5, 0.4), 1000, 2)
    w, _ = check_rlls(soft, *pair((p[y != 3], y[y != 3]), target))
    assert np.isnan(w[3])


# --- bbse: least squares on the simplex ---------------------------------------------------------


def by_active_sets(C, mu, pi):
    """The best of the feasible minimisers with each set of classes held at 0."""
    S, best = len(pi), (np.inf, None)
    for free in chain.from_iterable(combinations(range(S), k) for k in range(1, S + 1)):
        inner, f = C[:, free], len(free)
        border = np.block([[inner.T @ inner, pi[list(free)][:, None]], [pi[list(free)], 0.0]])
        solution = np.linalg.lstsq(border, np.append(inner.T @ mu, 1.0), rcond=None)[0][:f]
        w = np.zeros(S)
        w[list(free)] = solution
        if solution.min() >= 0 and np.linalg.norm(C @ w - mu) < best[0]:
            best = np.linalg.norm(C @ w - mu), w
    return best


def by_convex_solver(C, mu, pi):
    import cvxpy as cp

    w = cp.Variable(len(pi))
    solve(cp.Problem(cp.Minimize(cp.norm(C @ w - mu)), [w >= 0, pi @ w == 1]))
    feasible = np.maximum(w.value, 0)
    feasible = feasible / (pi @ feasible)
    return np.linalg.norm(C @ feasible - mu), feasible


def check_bbse(source, target, soft, solver, same=1e-4):
    """No residual is smaller; within ``same`` the weights are equal (None: not determined)."""
    C, mu, pi = system(source, target, soft)
    w = found("bbse", soft, source, target)
    w = w[~np.isnan(w)]
    best, other = solver(C, mu, pi)
    assert w.min() >= 0
    assert pi @ w == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(C @ w - mu) <= best * (1 + 1e-8) + 1e-12
    if same is not None:
        np.testing.assert_allclose(w, other, atol=same)
    return w


@BOTH
@EVERY_SIZE
def test_bbse_solves_the_confusion_where_that_is_a_distribution(K, soft):
    source, target = pair(drawn(11, tilted(K, 1.5), 8000, 6), drawn(12, tilted(K, 0.6), 8000, 6))
    C, mu, _ = system(source, target, soft)
    inverse = np.linalg.solve(C, mu)
    assert inverse.min() > 0
    np.testing.assert_allclose(found("bbse", soft, source, target), inverse, rtol=1e-9)


@BOTH
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_bbse_is_the_best_of_all_active_sets(seed, K, soft):
    rng = np.random.default_rng(seed)  # few rows, so that the bound often binds
    source, target = drawn(rng, tilted(K, 2), 60, 1), drawn(rng, np.eye(K)[seed % K], 15, 1)
    check_bbse(*pair(source, target), soft, by_active_sets, same=1e-8)


@BOTH
@EVERY_SIZE
def test_bbse_is_least_squares_on_the_simplex_where_the_bound_binds(K, soft):
    prior = np.eye(K)[0] if K == 2 else np.where(np.arange(K) < K // 3, 1 / (K // 3), 0.0)
    source, target = drawn(13, tilted(K, 2), 40 * K, 2), drawn(14, prior, 100, 3)
    w = check_bbse(*pair(source, target), soft, by_convex_solver)
    assert np.any(w == 0)


@BOTH
@pytest.mark.parametrize("K", [3, 10])
@pytest.mark.parametrize("blur", [0, 1e-9, 1e-5])
def test_bbse_with_a_nearly_singular_confusion_has_the_smallest_residual(blur, K, soft):
    (p, y), (q, _) = drawn(15, tilted(K, 2), 900, 2), drawn(16, tilted(K, 0.3), 300, 2)
    for rows in (p, q):  # classes 0 and 1 share what is predicted for either
        both = rows[:, 0] + rows[:, 1]
        rows[:, 0] = (0.5 + blur * rows[:, 0]) * both
        rows[:, 1] = both - rows[:, 0]
    source, target = Predictions(p, y), Predictions(q)
    check_bbse(source, target, soft, by_convex_solver, same=None)
    if K == 3:
        check_bbse(source, target, soft, by_active_sets, same=None)


@BOTH
@pytest.mark.parametrize("solver", [by_active_sets, by_convex_solver])
@pytest.mark.parametrize("binding", [False, True])
def test_bbse_where_the_source_lacks_a_class_has_more_rows_than_columns(binding, solver, soft):
    p, y = drawn(17, tilted(4, 2), 1200, 2)
    prior = np.array([1.0, 0, 0, 0] if binding else [0.2, 0.1, 0.3, 0.4])
    source, target = pair((p[y != 1], y[y != 1]), drawn(18, prior, 400, 3 if binding else 2))
    assert system(source, target, soft)[0].shape == (4, 3)
    w = check_bbse(source, target, soft, solver)
    assert np.any(w == 0) == binding
    assert np.isnan(found("bbse", soft, source, target)[1])
