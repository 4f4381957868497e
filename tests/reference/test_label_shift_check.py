"""The test of label shift against its definition, written again row by row and matrix by matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import calshift
from calshift.diagnostics import overidentification_test as overidentification
from calshift.diagnostics.overidentification_test import (
    Tables,
    likeliest_mixture,
    nearest_mixture,
    p_value,
)

LEVELS = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.92, 0.97, 0.99])  # far apart in log-odds


def sample(seed: int, K: int, n: int, m: int, spread: float = 1.5):
    """Source and target whose largest probability is one of eight, so that cells are clear."""
    rng = np.random.default_rng(seed)

    def drawn(rows, prior):
        y = rng.choice(K, rows, p=prior)
        hit = rng.random(rows) < 0.75
        predicted = np.where(hit, y, rng.integers(0, K, rows))
        which = np.clip(rng.normal(3.5 + spread * hit + y / K, 2, rows), 0, 7).astype(int)
        p = np.repeat(((1 - LEVELS[which]) / (K - 1))[:, None], K, axis=1)
        p[np.arange(rows), predicted] = LEVELS[which]
        return p, y

    tail = 2.0 ** -np.arange(K)
    return *drawn(n, np.full(K, 1 / K)), drawn(m, tail / tail.sum())[0]


def brute_cells(p, q, groups):
    """Predicted class and group of the middle rank of each row's confidence, for both samples."""
    both = np.concatenate([p, q])
    predicted, sure = both.argmax(axis=1), both.max(axis=1)
    cells = []
    for a, c in zip(predicted, sure, strict=True):
        others = sure[predicted == a]
        rank = (np.sum(others < c) + np.sum(others == c) / 2) / len(others)
        cells.append((int(a), min(int(groups * rank), groups - 1)))
    return cells[: len(p)], cells[len(p) :]


def brute_join(source, target, groups, K):
    """A dict: the name of the cell that each cell becomes."""

    def few(names):
        return min(sum(c in names for c in source), sum(c in names for c in target)) < 5

    name = {(a, g): (a, g) for a in range(K) for g in range(groups)}
    for a in range(K):
        if groups == 4:
            for low in (0, 2):
                if few([(a, low)]) or few([(a, low + 1)]):
                    name[a, low + 1] = (a, low)
        half = groups // 2
        lower, upper = [(a, g) for g in range(half)], [(a, g) for g in range(half, groups)]
        if few(lower) or few(upper):
            for g in range(groups):
                name[a, g] = (a, 0)
    rare = [a for a in range(K) if sum(c[0] == a for c in source) < 5]
    name.update({(a, g): "rare" for a in rare for g in range(groups)})
    counts = {c: sum(name[s] == c for s in source) for c in set(name.values())}
    if rare and counts["rare"] < 5:
        smallest = min((c for c in counts if c != "rare" and counts[c]), key=lambda c: counts[c])
        name = {cell: smallest if c == "rare" else c for cell, c in name.items()}
    return name


def brute_statistic(A, n, h, m, steps=60, tied=None):
    """J and df with the whole covariance, one cell dropped, q = last + differences.

    Classes that are tied, with equal columns, share their mass.
    """
    L, S = A.shape
    prior = n / n.sum()
    q = prior
    for _ in range(steps):
        positive = np.clip(q, 0, None)
        w = (m * positive / positive.sum() + S * prior) / (m + S)
        mu = A @ w
        V = (np.diag(mu) - np.outer(mu, mu)) / m
        for y in range(S):
            V += w[y] ** 2 * (np.diag(A[:, y]) - np.outer(A[:, y], A[:, y])) / (n[y] - 1)
        inner = np.linalg.inv(V[:-1, :-1])
        X, z = A[:-1, :-1] - A[:-1, -1:], h[:-1] - A[:-1, -1]
        part = np.linalg.lstsq(X.T @ inner @ X, X.T @ inner @ z, rcond=1e-12)[0]
        q = np.append(part, 1 - part.sum())
        if tied is not None:
            q[tied] = q[tied].mean()
    g = h - A @ q
    J = g[:-1] @ inner @ g[:-1]
    return J, L - 1 - np.linalg.matrix_rank(A[:, :-1] - A[:, -1:], 1e-6), g / np.sqrt(np.diag(V))


def brute_check(p, y, q, tied=None):
    K = p.shape[1]
    groups = 4 if K <= 3 else 2
    source, target = brute_cells(p, q, groups)
    name = brute_join(source, target, groups, K)
    cells = sorted({name[c] for c in [*source, *target]}, key=str)
    labels = sorted(set(y.tolist()))
    N = np.array([[sum(name[c] == cell and k == label for c, k in zip(source, y, strict=True))
                   for label in labels] for cell in cells], dtype=float)  # fmt: skip
    M = np.array([sum(name[c] == cell for c in target) for cell in cells], dtype=float)
    J, df, residual = brute_statistic(
        N / N.sum(axis=0), N.sum(axis=0), M / M.sum(), M.sum(), tied=tied
    )
    where = {cell: k for k, cell in enumerate(cells)}
    table = [
        [residual[where[name[a, g]]] if name[a, g] in where else np.nan for g in range(groups)]
        for a in range(K)
    ]
    return J, df, np.array(table)


@pytest.mark.parametrize(
    ("seed", "K", "n", "m"),
    [(0, 2, 300, 200), (1, 2, 60, 400), (2, 3, 300, 300), (3, 4, 300, 200), (4, 5, 400, 150),
     (5, 5, 90, 300), (6, 7, 120, 120), (7, 6, 500, 60), (8, 3, 40, 40)],
)  # fmt: skip
def test_statistic_degrees_of_freedom_and_residuals(monkeypatch, seed, K, n, m):
    p, y, q = sample(seed, K, n, m)
    J, df, residuals = brute_check(p, y, q)
    once = calshift.check_label_shift(p, y, q)
    monkeypatch.setattr(overidentification, "STEPS", 60)
    found = calshift.check_label_shift(p, y, q)
    assert found.df == df
    assert found.df > 0
    np.testing.assert_allclose(found.statistic, J, rtol=1e-6)
    np.testing.assert_allclose(found.residuals, residuals, atol=1e-5)
    # two steps from the shares of the likelihood are as good as sixty, up to a few percent
    np.testing.assert_allclose(once.statistic, J, rtol=0.05)


def test_classes_with_equal_columns_count_once(monkeypatch):
    """Rank below the number of classes: two labels with the same rows."""
    monkeypatch.setattr(overidentification, "STEPS", 60)
    p, y, q = sample(9, 4, 300, 300)
    first = p[y == 0]
    p = np.concatenate([p[y != 3], first])
    y = np.concatenate([y[y != 3], np.full(len(first), 3)])
    found = calshift.check_label_shift(p, y, q)
    J, df, _ = brute_check(p, y, q, tied=[0, 3])
    assert found.df == df == 5  # eight cells, three different columns
    np.testing.assert_allclose(found.statistic, J, rtol=1e-5)


def test_the_null_is_a_maximum_of_the_likelihood():
    """No small change of (A, q) raises the likelihood of both tables by more than EM left."""
    rng = np.random.default_rng(0)
    source = rng.multinomial(300, rng.dirichlet(np.ones(8)), 3).T.astype(float)
    target = rng.multinomial(500, rng.dirichlet(np.ones(8))).astype(float)
    A, q = likeliest_mixture(Tables(source, target, 2))

    def likelihood(A, q):
        return np.sum(source * np.log(A)) + target @ np.log(A @ q)

    best = likelihood(A, q)
    for _ in range(200):
        A2, q2 = (x * np.exp(0.03 * rng.normal(size=x.shape)) for x in (A, q))
        assert likelihood(A2 / A2.sum(axis=0), q2 / q2.sum()) < best + 0.1


@pytest.mark.parametrize("effect", [0.0, 0.6, 1.0])
def test_bootstrap_and_chi_square_agree_on_large_samples(monkeypatch, effect):
    """Full cells, classes told apart, tens of thousands of rows: J is chi-square.

    2000 draws without stopping: the standard error of p is at most .0112, and 4 of them allow
    for four cells of three tables each.
    """
    monkeypatch.setattr(overidentification, "STOP", 10**9)
    rng = np.random.default_rng(7)
    A = 0.1 + 0.6 * np.repeat(np.eye(3), 2, axis=0)
    A = A / A.sum(axis=0)
    bent = A @ [0.5, 0.3, 0.2] * (1 + effect * 0.02 * np.array([1, -1, 0, 0, 1, -1]))
    for seed in range(4):
        source = np.stack([rng.multinomial(20_000, A[:, y]) for y in range(3)], axis=1).astype(
            float
        )
        target = rng.multinomial(30_000, bent / bent.sum()).astype(float)
        tables = Tables(source, target, 2)
        null = likeliest_mixture(tables)
        fit = nearest_mixture(
            *(np.concatenate([t, 0 * t[:1]])[None] for t in (source, target)), null[1]
        )
        assert fit.df[0] == 3
        np.testing.assert_allclose(fit.tail[0], chi2.sf(fit.statistic[0], 3))
        p, _ = p_value(tables, fit.tail[0], null, 2000, np.random.default_rng(seed))
        assert abs(p - fit.tail[0]) < 4 * 0.0112


def test_stopping_early_decides_as_all_draws_do(monkeypatch):
    """20 / l is above .1 whenever it is used, and so is the p-value of all 200 draws."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=2)
    stopped, full = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        data = *simulation.source(400, rng), simulation.target(400, rng)[0]
        stopped.append(calshift.check_label_shift(*data, rng=seed))
        with monkeypatch.context() as patch:
            patch.setattr(overidentification, "STOP", 10**9)
            full.append(calshift.check_label_shift(*data, rng=seed).p_value)
    p = np.array([check.p_value for check in stopped])
    assert np.array_equal(p <= 0.09, np.array(full) <= 0.09)
    assert np.array_equal(p[p < 0.09], np.array(full)[p < 0.09])
    assert all(check.draws == round(20 / check.p_value) for check in stopped if check.draws < 200)
    assert min(check.draws for check in stopped) < 60
