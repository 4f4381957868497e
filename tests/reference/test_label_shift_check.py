"""The test of label shift against its definition, written again row by row and matrix by matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import chi2

import calshift
from calshift.diagnostics import null_bootstrap
from calshift.diagnostics.cell_tables import Tables, fit_tables
from calshift.diagnostics.nonnegative_shares import solve_shares
from calshift.diagnostics.null_bootstrap import draw_p_values
from calshift.diagnostics.null_mixture import likeliest_mixture
from calshift.diagnostics.overidentification_test import nearest_mixture

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


def brute_likelihood(N, M, steps=300):
    """q of the largest likelihood of both tables in unmerged cells, as the noise is taken there."""
    n, pooled = N.sum(axis=0), N.sum(axis=1) + M
    A = N + 0.05 * np.outer(pooled / pooled.sum(), np.ones(len(n)))
    A, q = A / A.sum(axis=0), n / n.sum()
    for _ in range(steps):
        mass = np.array([M * A[:, y] * q[y] / np.maximum(A @ q, 1e-300) for y in range(len(n))]).T
        A = (N + mass) / (N + mass).sum(axis=0)
        before, q = q, mass.sum(axis=0) / mass.sum()
        if np.abs(q - before).sum() < 1e-4:
            break
    return q


def brute_statistic(A, n, h, m, start, d):
    """J, df, z and residuals with the whole covariance at ``start``, one cell dropped.

    Shares of at least 0 by scipy's nnls, with sum 1 by a heavy row.
    """
    w = (m * start / start.sum() + len(n) * n / n.sum()) / (m + len(n))
    mu = A @ w
    V = (np.diag(mu) - np.outer(mu, mu)) / m
    for y in range(len(n)):
        V += w[y] ** 2 * (np.diag(A[:, y]) - np.outer(A[:, y], A[:, y])) / (n[y] - 1)
    D = A @ (w / m + w**2 / (n - 1))
    X = np.vstack([A / np.sqrt(D)[:, None], 1e4 * np.sqrt(m) * np.ones(len(n))])
    q = nnls(X, np.append(h / np.sqrt(D), 1e4 * np.sqrt(m)))[0]
    g, some = h - A @ q, A[:, q > 0]
    J = g @ (g / D)
    if (q > 0).all():  # then this is the J of the whole covariance
        np.testing.assert_allclose(J, g[:-1] @ np.linalg.solve(V[:-1, :-1], g[:-1]), rtol=1e-6)
    hat = some @ np.linalg.pinv(some.T @ (some / D[:, None]), 1e-9) @ (some / D[:, None]).T
    rest = np.eye(len(h)) - hat
    z = d @ g / np.sqrt(d @ rest @ np.diag(D) @ rest.T @ d)
    return J, len(h) - np.linalg.matrix_rank(some, 1e-6), z, g / np.sqrt(np.diag(V))


def brute_check(p, y, q):
    K = p.shape[1]
    groups = 4 if K <= 3 else 2
    source, target = brute_cells(p, q, groups)
    name = brute_join(source, target, groups, K)
    labels = sorted(set(y.tolist()))

    def counted(cells, name):
        N = [[sum(name[c] == cell and k == label for c, k in zip(source, y, strict=True))
              for label in labels] for cell in cells]  # fmt: skip
        M = [sum(name[c] == cell for c in target) for cell in cells]
        return np.array(N, dtype=float), np.array(M, dtype=float)

    every = [(a, g) for a in range(K) for g in range(groups)]
    start = brute_likelihood(*counted(every, {cell: cell for cell in every}))
    cells = sorted({name[c] for c in [*source, *target]}, key=str)
    N, M = counted(cells, name)
    both = [*source, *target]
    level = dict(zip(range(groups), np.linspace(-1, 1, groups), strict=True))
    mean = {a: np.mean([level[g] for b, g in both if b == a] or [0]) for a in range(K)}
    d = np.array([np.mean([level[c[1]] - mean[c[0]] for c in both if name[c] == x]) for x in cells])
    J, df, z, residual = brute_statistic(
        N / N.sum(axis=0), N.sum(axis=0), M / M.sum(), M.sum(), start, d
    )
    where = {cell: k for k, cell in enumerate(cells)}
    table = [
        [residual[where[name[a, g]]] if name[a, g] in where else np.nan for g in range(groups)]
        for a in range(K)
    ]
    return J, df, z, np.array(table)


@pytest.mark.parametrize(
    ("seed", "K", "n", "m"),
    [(0, 2, 300, 200), (1, 2, 60, 400), (2, 3, 300, 300), (3, 4, 300, 200), (4, 5, 400, 150),
     (5, 5, 90, 300), (6, 7, 120, 120), (7, 6, 500, 60), (8, 3, 40, 40)],
)  # fmt: skip
def test_statistics_degrees_of_freedom_and_residuals(seed, K, n, m):
    p, y, q = sample(seed, K, n, m)
    J, df, z, residuals = brute_check(p, y, q)
    found = calshift.check_label_shift(p, y, q)
    assert found.df == df
    assert found.df > 0
    np.testing.assert_allclose(found.statistic, J, rtol=1e-5)
    np.testing.assert_allclose(found.direction, z, rtol=1e-5)
    np.testing.assert_allclose(found.residuals, residuals, atol=1e-4)


def test_classes_with_equal_columns_count_once():
    """Rank below the number of classes: two labels with the same rows."""
    p, y, q = sample(9, 4, 300, 300)
    first = p[y == 0]
    p = np.concatenate([p[y != 3], first])
    y = np.concatenate([y[y != 3], np.full(len(first), 3)])
    found = calshift.check_label_shift(p, y, q)
    J, df, _, _ = brute_check(p, y, q)
    assert found.df == df == 5  # eight cells, three different columns
    np.testing.assert_allclose(found.statistic, J, rtol=1e-5)


@pytest.mark.parametrize("S", [2, 5, 12])
def test_shares_are_those_of_a_quadratic_program(S):
    """Half of the problems have their unrestricted minimum far outside; 40 of them at once."""
    rng = np.random.default_rng(S)
    X = rng.random((40, 2 * S, S))
    size = np.sqrt(np.sum(X**2, axis=1))
    true = rng.dirichlet(np.ones(S), 40) + np.where(rng.random((40, 1)) < 0.5, 1.0, 0.0) * (
        rng.normal(size=(40, S))
    )
    h = np.sum(X * true[:, None], axis=2)
    unit = X / size[:, None]
    pull = np.sum(unit * h[:, :, None], axis=1)
    x, active, _ = solve_shares(unit.transpose(0, 2, 1) @ unit, pull, size, pull)
    assert np.array_equal(x > 0, active)
    for k in range(40):
        heavy = 1e4
        best = nnls(np.vstack([X[k], heavy * np.ones(S)]), np.append(h[k], heavy))[0]
        np.testing.assert_allclose(x[k] / size[k], best, atol=1e-5)
        np.testing.assert_allclose(np.sum(x[k] / size[k]), 1)


def test_negative_shares_are_not_allowed():
    """A target outside the range of all mixtures has a statistic that no share below 0 removes."""
    source = np.array([[80.0, 20], [40, 40], [20, 80], [60, 60]])
    target = np.array([300.0, 60, 0, 60])
    fit = nearest_mixture(source[None], target[None], np.array([0.9, 0.1]), np.zeros((1, 4)))
    assert fit.shares.tolist() == [[1.0, 0.0]]
    assert fit.df.tolist() == [3]  # four cells, one class in use
    scale = 1 / np.sqrt(fit.noise[0])
    free = np.linalg.lstsq(source / 200 * scale[:, None], target / 420 * scale, rcond=None)[0]
    assert free.min() < -0.2


def test_the_null_is_a_maximum_of_the_likelihood():
    """No small change of (A, q) raises the likelihood of both tables by more than EM left."""
    rng = np.random.default_rng(0)
    source = rng.multinomial(300, rng.dirichlet(np.ones(8)), 3).T.astype(float)
    target = rng.multinomial(500, rng.dirichlet(np.ones(8))).astype(float)
    A, q = likeliest_mixture(source, target)

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
    monkeypatch.setattr(null_bootstrap, "_stop_at", lambda level, draws: 10**9)
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
        null = likeliest_mixture(source, target)
        fit = fit_tables(tables, tables.observed, null[1]).mixture
        assert fit.df[0] == 3
        tails = fit.tails[:, 0]
        expected = chi2.sf(fit.statistic[0], 3), chi2.sf(fit.direction[0] ** 2, 1)
        np.testing.assert_allclose(tails, expected)
        drawn = draw_p_values(tables, fit, null, 2000, np.random.default_rng(seed), 0.05)
        assert np.abs(np.array(drawn.p_values[:2]) - tails[:2]).max() < 4 * 0.0112
        least = min(drawn.p_values[:2])
        assert least <= drawn.p_values[2] <= 2 * least
        # the mean of 2000 J of 3 degrees of freedom: a standard error of sqrt(6 / 2000) / 3
        assert abs(drawn.scale - 1) < 4 * np.sqrt(6 / 2000) / 3


def test_stopping_early_decides_as_all_draws_do(monkeypatch):
    """10 / l is above .05 whenever it is used, and so are the p-values of all 200 draws."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=3, dimensions=2)
    stopped, full = [], []

    def p_values(data, seed):
        check = calshift.check_label_shift(*data, rng=seed)
        return check.draws, [check.p_value, check.direction_p_value, check.joint_p_value]

    for seed in range(30):
        rng = np.random.default_rng(seed)
        data = *simulation.source(400, rng), simulation.target(400, rng)[0]
        stopped.append(p_values(data, seed))
        with monkeypatch.context() as patch:
            patch.setattr(null_bootstrap, "_stop_at", lambda level, draws: 10**9)
            full.append(p_values(data, seed)[1])
    draws, p = np.array([draws for draws, _ in stopped]), np.array([p for _, p in stopped])
    assert np.array_equal(p <= 0.05, np.array(full) <= 0.05)
    assert np.array_equal(p[p < 0.05], np.array(full)[p < 0.05])
    early = draws < 200
    assert np.array_equal(draws[early], np.rint(10 / p[:, :2].min(axis=1)[early]))
    assert draws.min() < 60
