"""check_label_shift: false alarms, power, laws, words, and odd inputs."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial

import numpy as np
import pytest

import calshift
from calshift import Predictions, check_label_shift
from calshift.binning import confidence_cells
from calshift.binning.confidence_cells import tabulate_cells
from calshift.binning.row_kinds import RowKinds
from calshift.diagnostics import nonnegative_shares, null_mixture, overidentification_test
from calshift.diagnostics.label_shift_check import label_shift_check
from calshift.diagnostics.merged_cells import add_up, merge_places
from calshift.diagnostics.nonnegative_shares import solve_shares
from calshift.diagnostics.null_mixture import likeliest_mixture
from calshift.engines import Arrays

GAUSSIAN = calshift.simulate.GaussianSimulation(n_classes=4, dimensions=3)


def drawn(n: int, m: int, seed: int, simulation=GAUSSIAN):
    rng = np.random.default_rng([seed, n, m])
    return *simulation.source(n, rng), simulation.target(m, rng)[0]


def weak(K: int, n: int, m: int, seed: int, flat: float = 1.0):
    """A class of 90% of the source and 80% of the target is predicted for 95% of the rows."""
    rng = np.random.default_rng([seed, n, m])
    means = 0.9 * np.random.default_rng(33).normal(size=(K, 2))
    here, there = (np.append(share, np.full(K - 1, (1 - share) / (K - 1))) for share in (0.9, 0.8))

    def sample(rows, prior, flat):
        y = rng.choice(K, rows, p=prior)
        x = means[y] + rng.normal(size=(rows, 2))
        score = x @ means.T - (means**2).sum(axis=1) / 2 + np.log(here)
        return calshift.softmax(flat * score), y

    return *sample(n, here, 1.0), sample(m, there, flat)[0]


def boundary(seed: int):
    """Label shift to a target of only two of the five classes."""
    simulation = calshift.simulate.GaussianSimulation(n_classes=5, dimensions=3)
    p, y, _ = drawn(800, 1, seed, simulation)
    q, hidden = simulation.target(3000, np.random.default_rng([seed, 1]))
    return p, y, q[hidden < 2][:800]


def flattened(p: np.ndarray, power: float = 0.6) -> np.ndarray:
    return p**power / (p**power).sum(axis=1, keepdims=True)


# --- false alarms and power


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "n", "m"),
    [
        ({"n_classes": 2, "dimensions": 2, "imbalance": 3}, 400, 400),
        ({"n_classes": 5, "dimensions": 4}, 400, 1200),
        ({"n_classes": 10, "dimensions": 10, "seed": 24, "imbalance": 100}, 1000, 5000),
        ({"n_classes": 20, "dimensions": 10, "seed": 24}, 300, 300),  # sparse: cells join
    ],
)  # fmt: skip
def test_false_alarms_are_as_rare_as_the_level(asked, n, m):
    """240 draws at 5% give 12 on average with a deviation of 3.4: 4 to 23 is 2.4 of them below
    and 3.2 above, which a right test leaves once in 250 times (and the draws are seeded).

    A chi-square distribution rejects too often in the third case, and a bootstrap that holds the
    joined cells fixed hardly ever in the last.
    """
    simulation = calshift.simulate.GaussianSimulation(**asked)
    checks = [check_label_shift(*drawn(n, m, seed, simulation), rng=seed) for seed in range(240)]
    assert 4 <= sum(check.rejected for check in checks) <= 23


def distance_from_uniform(p) -> float:
    """Kolmogorov's distance, of which 1.63 / sqrt(n) is the 1% bound."""
    p, steps = np.sort(p), np.arange(len(p) + 1) / len(p)
    return max(np.max(steps[1:] - p), np.max(p - steps[:-1])) * np.sqrt(len(p))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [partial(drawn, 600, 600), boundary, partial(weak, 4, 900, 900)])
def test_p_values_are_uniform_under_label_shift(draw):
    """200 draws: in the interior, with shares at their boundary, and with few predicted classes."""
    checks, rng = (
        [check_label_shift(*draw(seed), rng=seed) for seed in range(200)],
        np.random.default_rng(5),
    )
    for name in ("p_value", "direction_p_value"):
        found = [spread(getattr(check, name), rng) for check in checks]
        assert distance_from_uniform(found) < 1.63
    assert distance_from_uniform([check.joint_p_value for check in checks]) < 1.63


def spread(p: float, rng: np.random.Generator) -> float:
    """A p-value at random between it and the next smaller one that the bootstrap can give.

    It gives 10 / l, if the l-th draw is the tenth as extreme, and otherwise (1 + r) / 201 for r of
    these. Under label shift the largest, 1, has a probability of 1 / 11, and so on.
    """
    below = 10 / (round(10 / p) + 1) if p > 10 / 201 else p - 1 / 201
    return float(rng.uniform(below, p))


@pytest.mark.slow
def test_the_distance_and_its_bound():
    """Confidence moves by a known total variation in the cells: the bound is above it, the estimate
    near, and at the detectable distance four of five draws or more reject.

    120 draws: a coverage of .95 gives at least 107 with a probability of .995, a power of .8 at
    least 84. The estimate is within a third.
    """
    for flat in (0.85, 0.7):
        large = check_label_shift(*drawn(200_000, 200_000, 0)[:2], flattened(
            drawn(200_000, 200_000, 0)[2], flat))  # fmt: skip
        true = large.distance
        checks = []
        for seed in range(120):
            p, y, q = drawn(1500, 1500, seed)
            checks.append(check_label_shift(p, y, flattened(q, flat), rng=seed))
        assert sum(check.distance_bound >= true for check in checks) >= 107
        assert abs(np.mean([check.distance for check in checks]) / true - 1) < 1 / 3
        if true > np.mean([check.detectable_distance for check in checks]):
            assert sum(check.rejected for check in checks) >= 84


def test_larger_violations_have_smaller_p_values_and_larger_distances():
    p, y, q = drawn(3000, 3000, 0)
    checks = [check_label_shift(p, y, flattened(q, flat)) for flat in (1.0, 0.9, 0.8, 0.65, 0.5)]
    assert np.all(np.diff([check.joint_p_value for check in checks]) <= 0)
    assert np.all(np.diff([check.distance for check in checks]) >= 0)
    assert np.all(np.diff([check.direction for check in checks]) < 0)
    assert all(check.distance <= check.distance_bound for check in checks)


def test_more_rows_detect_smaller_distances():
    few, many = (check_label_shift(*drawn(size, size, 1)) for size in (500, 20_000))
    # a distance in total variation decreases with the root of the rows
    assert 4 < few.detectable_distance / many.detectable_distance < 9
    assert "would be detected" in many.verdict


def test_shares_below_zero_do_not_explain_a_target():
    """Source labels wrong in a fifth of rows, all of the target in one class: outside the range."""
    p, y, _ = drawn(4000, 1, 0)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(4000) < 0.3, rng.integers(0, 4, 4000), y)
    q, hidden = GAUSSIAN.target(30_000, rng)
    check = check_label_shift(p, wrong, q[hidden == 0][:4000])
    assert check.rejected
    assert check.df > 4  # eight cells, and fewer than four classes with a share
    assert not check_label_shift(p, y, q[hidden == 0][:4000]).rejected


@pytest.mark.parametrize("K", [3, 4, 10, 30])
def test_models_that_predict_one_class_are_tested(K):
    p, y, q = weak(K, 2000, 2000, 0)
    predicted = np.bincount(p.argmax(axis=1), minlength=K)
    assert predicted.max() >= 0.95 * 2000
    check = check_label_shift(p, y, q)
    assert check.df > 0
    assert check.p_value > 0.05
    assert check.divided == (K > 3)  # four cells a class are enough for three
    other = check_label_shift(*weak(K, 2000, 2000, 0, flat=1.2))
    assert other.rejected == (K < 30)  # 7 source rows of most classes: too few to tell
    json.dumps(other.to_dict(), allow_nan=False)
    assert max(len(line) for line in str(other).splitlines()) <= 110


def test_divided_rows_are_the_same_in_any_order_and_in_batches():
    p, y, q = weak(6, 1200, 900, 1)
    whole = check_label_shift(p, y, q)
    assert whole.divided
    rng = np.random.default_rng(0)
    order, other = rng.permutation(1200), rng.permutation(900)
    assert check_label_shift(p[order], y[order], q[other]) == whole
    names = rng.permutation(6)
    same(check_label_shift(p[:, names], np.argsort(names)[y], q[:, names]), whole)
    parts = Arrays(Predictions(p, y), rows=101), Arrays(Predictions(q), rows=37)
    assert label_shift_check(*parts, 0.05, 200, 0) == whole


def test_rows_are_divided_by_the_class_farthest_above_its_mean():
    """By hand: class 0 is predicted for all rows, and the others take those where they are high."""
    p = np.array([[0.9, 0.05, 0.05], [0.6, 0.35, 0.05], [0.6, 0.05, 0.35], [0.9, 0.06, 0.04]])
    kinds = RowKinds(np.array([True, False, False]), np.log([0.75, 0.1, 0.1]))
    assert kinds.of_rows(Predictions(p), np.zeros(4, dtype=int)).tolist() == [0, 1, 2, 0]
    assert kinds.of_rows(Predictions(p), np.array([2, 0, 1, 0])).tolist() == [2, 1, 1, 0]


def test_gross_violations_are_found():
    for seed in range(10):
        p, y, q = drawn(1000, 1000, seed)
        assert check_label_shift(p, y, flattened(q), rng=seed).rejected
        assert check_label_shift(p, y, np.roll(q, 1, axis=1), rng=seed).rejected


def test_a_class_that_the_source_never_showed_counts_against_label_shift():
    simulation = calshift.simulate.GaussianSimulation(n_classes=5, dimensions=4, imbalance=2)
    p, y = simulation.source(2000, 1)
    q, hidden = simulation.target(2000, 2)
    check = check_label_shift(p[y != 2], y[y != 2], q)
    assert check.rejected
    assert "the source lacks class 2" in check.warnings[0]
    assert check.observed[2] > check.expected[2]
    without = check_label_shift(p[y != 2], y[y != 2], q[hidden != 2])
    assert not without.rejected


def test_residuals_point_at_what_changed():
    p, y, q = drawn(4000, 4000, 5)
    changed = np.where((q.argmax(axis=1) == 1)[:, None], flattened(q, 0.5), q)
    check = check_label_shift(p, y, changed)
    low, high = check.residuals[1]
    assert low > 4
    assert high < -4
    assert np.abs(np.delete(check.residuals, 1, axis=0)).max() < 4
    assert "so many rows predicted as 1 with low confidence" in check.verdict
    assert "so few rows predicted as 1 with high confidence" in check.verdict


# --- laws


def same(a, b) -> None:
    np.testing.assert_allclose(a.statistic, b.statistic, rtol=1e-9)
    assert (a.df, a.p_value, a.draws) == (b.df, b.p_value, b.draws)
    assert (a.direction_p_value, a.joint_p_value) == (b.direction_p_value, b.joint_p_value)


def test_the_order_of_the_rows_does_not_matter():
    p, y, q = drawn(300, 250, 1)
    rng = np.random.default_rng(0)
    order, other = rng.permutation(300), rng.permutation(250)
    assert check_label_shift(p[order], y[order], q[other]) == check_label_shift(p, y, q)


@pytest.mark.parametrize("K", [2, 3, 6])
def test_the_names_of_the_classes_do_not_matter(K):
    simulation = calshift.simulate.GaussianSimulation(n_classes=K, dimensions=3)
    p, y, q = drawn(500, 400, 2, simulation)
    order = np.random.default_rng(3).permutation(K)
    here, there = check_label_shift(p, y, q), check_label_shift(
        p[:, order], np.argsort(order)[y], q[:, order]
    )  # fmt: skip
    same(here, there)
    np.testing.assert_allclose(there.residuals, here.residuals[order], atol=1e-9)
    np.testing.assert_allclose(there.class_residuals, here.class_residuals[order], atol=1e-9)


def test_sample_weights_are_repetitions_and_zero_removes():
    p, y, q = drawn(300, 250, 4)
    rng = np.random.default_rng(0)
    w, v = rng.integers(0, 4, 300), rng.integers(0, 3, 250)
    weighted = check_label_shift(
        Predictions(p, y, sample_weight=w), None, Predictions(q, sample_weight=v)
    )
    repeated = check_label_shift(np.repeat(p, w, axis=0), np.repeat(y, w), np.repeat(q, v, axis=0))
    same(weighted, repeated)
    assert (weighted.n_source, weighted.n_target) == (w.sum(), v.sum())


def test_fractional_weights_count_as_fractions_of_rows():
    p, y, q = drawn(600, 600, 4)
    half = check_label_shift(
        Predictions(p, y, sample_weight=np.full(600, 0.5)),
        None,
        Predictions(q, sample_weight=np.full(600, 0.5)),
    )
    whole = check_label_shift(p, y, q)
    assert half.df == whole.df
    assert whole.statistic / 2.5 < half.statistic < whole.statistic / 1.7


def test_batches_are_the_whole():
    p, y, q = drawn(500, 300, 6)
    source, target = Predictions(p, y), Predictions(q)
    whole = Arrays(source), Arrays(target)
    parts = Arrays(source, rows=37), Arrays(target, rows=11)
    seen = np.ones(4, dtype=bool)
    rows, other, groups, divided = tabulate_cells(*whole, 2, seen)
    same, again, _, _ = tabulate_cells(*parts, 2, seen)
    assert np.array_equal(rows, same)
    assert np.array_equal(other, again)
    assert rows.shape == (8, 4)
    assert (groups, divided) == (2, False)
    assert rows.sum() == 500
    assert other.sum() == 300
    assert np.array_equal(rows.sum(axis=0), np.bincount(y))
    assert np.array_equal(other.reshape(4, 2).sum(axis=1), np.bincount(q.argmax(axis=1)))


def test_a_second_pass_over_the_source_counts_the_same(monkeypatch):
    """With many classes, counts by label and step of confidence would not fit in memory."""
    p, y, q = drawn(500, 300, 6)
    asked = Arrays(Predictions(p, y)), Arrays(Predictions(q)), 2, np.ones(4, dtype=bool)
    monkeypatch.setattr(confidence_cells, "MOST_FINE", 4096)  # 1024 steps of 4 classes
    second = tabulate_cells(*asked)
    monkeypatch.setattr(confidence_cells, "MOST_FINE", 4 * 4096)
    monkeypatch.setattr(confidence_cells, "FINE", 1024)
    once = tabulate_cells(*asked)
    assert all(np.array_equal(one, other) for one, other in zip(once, second, strict=True))


def test_one_column_is_two_classes():
    p, y, q = drawn(800, 800, 7, calshift.simulate.BetaSimulation())
    two = [np.stack([1 - x, x], axis=1) for x in (p, q)]
    assert check_label_shift(p, y, q) == check_label_shift(two[0], y, two[1])


def test_the_same_seed_gives_the_same_answer_and_none_is_the_default():
    data = drawn(300, 300, 8)
    assert check_label_shift(*data) == check_label_shift(*data, rng=0)
    p = {check_label_shift(*data, rng=seed).p_value for seed in range(6)}
    assert len(p) > 1
    generator = np.random.default_rng(0)
    assert check_label_shift(*data, rng=generator) == check_label_shift(*data)


def test_the_function_for_predictions_is_the_public_one():
    p, y, q = drawn(300, 300, 9)
    inner = label_shift_check(Arrays(Predictions(p, y)), Arrays(Predictions(q)), 0.05, 200, 0)
    assert inner == check_label_shift(p, y, q)


# --- cells


def test_cells_that_join():
    """Four groups of one class by hand; the second class is rare, the third well filled."""
    source = np.array([9, 9, 9, 2, 1, 0, 0, 1, 9, 9, 9, 9], dtype=float)
    target = np.array([9, 9, 9, 9, 9, 9, 9, 9, 9, 2, 0, 3], dtype=float)
    place = merge_places(source[None], target[None], 4)[0]
    # 3 joins 2; the rare class is too small alone and joins the smallest cell, 0 (of 9 rows);
    # of the last, both pairs have a poor cell, and the upper pair is poor as a whole
    assert place.tolist() == [0, 1, 2, 2, 0, 0, 0, 0, 8, 8, 8, 8]
    together = add_up(target[None], place[None], 13)[0]
    assert together.tolist() == [45, 9, 18, 0, 0, 0, 0, 0, 14, 0, 0, 0, 0]


def test_rare_classes_join_each_other_first():
    source = np.array([20, 20, 2, 1, 2, 2, 20, 20], dtype=float)
    place = merge_places(source[None], source[None], 2)[0]
    assert place.tolist() == [0, 1, 8, 8, 8, 8, 6, 7]


def test_equal_confidences_are_not_split_and_halves_are_halves():
    p = np.linspace(0.51, 0.99, 1000)
    y = np.ones(1000, dtype=int)
    spread, equal = Predictions(p, y), Predictions(np.full(1000, 0.8), y)
    seen = np.array([False, True])
    rows, other, _, _ = tabulate_cells(Arrays(spread), Arrays(spread), 2, seen)
    assert abs(other[3] - 500) < 20
    assert np.array_equal(rows[:, 0], other)
    _, other, _, _ = tabulate_cells(Arrays(equal), Arrays(equal), 2, seen)
    assert np.count_nonzero(other) == 1


# --- edges


def untested(check) -> None:
    assert check.p_value is None
    assert check.df == 0
    assert not check.rejected
    assert np.isnan(check.residuals).all()
    assert "could not be tested" in check.warnings[0]
    assert "could not be tested" in check.verdict
    assert "nan" not in str(check).lower()
    assert "p =" not in str(check)
    assert check.to_dict()["p_value"] is None
    assert check.direction_p_value is None
    assert check.distance is check.distance_bound is check.detectable_distance is None


def test_constant_predictions_cannot_be_tested():
    p = np.tile([0.2, 0.3, 0.5], (60, 1))
    untested(check_label_shift(p, np.arange(60) % 3, p))
    untested(check_label_shift(np.full(60, 0.7), np.arange(60) % 2, np.full(9, 0.7)))


def test_a_handful_of_rows_cannot_be_tested():
    untested(check_label_shift([0.2, 0.8], [0, 1], [0.4]))
    p, _, q = drawn(8, 4, 0)
    untested(check_label_shift(p, np.arange(8) % 4, q))


def test_one_target_row():
    p, y, q = drawn(500, 1, 1)
    check_label_shift(p, y, q)


def test_predictions_that_are_all_sure():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    hard = np.eye(3)[np.where(rng.random(400) < 0.8, y, rng.integers(0, 3, 400))]
    untested(check_label_shift(hard, y, hard[::-1]))  # one cell a class: any mix fits
    perfect = check_label_shift(np.eye(3)[y], y, np.eye(3)[y[:100]])
    assert not perfect.rejected


def test_predictions_that_say_nothing_about_the_label():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 600)
    check = check_label_shift(p, rng.integers(0, 3, 600), rng.dirichlet([1, 1, 1], 600))
    assert check.p_value is not None
    assert np.isfinite(check.statistic)


def test_a_class_with_one_row_and_a_target_without_some_classes():
    p, y, q = drawn(600, 600, 2)
    kept = (y != 3) | (np.cumsum(y == 3) == 1)
    check = check_label_shift(p[kept], y[kept], q[q.argmax(axis=1) < 2])
    assert np.isfinite(check.statistic)
    assert check.p_value is not None


def test_identical_samples_are_label_shift_even_with_astronomic_weights():
    p, y, _ = drawn(500, 1, 3)
    for size in (1.0, 1e20, 1e90):
        w = np.full(500, size)
        check = check_label_shift(
            Predictions(p, y, sample_weight=w), None, Predictions(p, sample_weight=w)
        )
        assert check.p_value > 0.5
        assert check.statistic < 1e-6


def test_float32_and_lists():
    p, y, q = drawn(400, 400, 4)
    a = check_label_shift(p.astype(np.float32), y, q.astype(np.float32))
    assert abs(a.statistic - check_label_shift(p.tolist(), y.tolist(), q.tolist()).statistic) < 2


def test_many_classes_are_answered_with_fewer_draws_or_not_at_all(monkeypatch):
    monkeypatch.setattr("calshift.diagnostics.label_shift_check.MOST_WORK", 128 * 40)
    check = check_label_shift(*drawn(900, 900, 5))
    assert check.draws <= 40
    assert "40 bootstrap draws" in check.warnings[0]
    monkeypatch.setattr("calshift.diagnostics.label_shift_check.MOST_WORK_A_DRAW", 127)
    check = check_label_shift(*drawn(900, 900, 5))
    assert check.p_value is None
    assert "4 classes would take too long" in check.warnings[0]


def test_sparse_and_dense_products_agree(monkeypatch):
    data = drawn(400, 400, 6)
    dense = check_label_shift(*data)
    monkeypatch.setattr("calshift.diagnostics.overidentification_test.MANY", 1)
    monkeypatch.setattr("calshift.diagnostics.overidentification_test.SPARSE", 2.0)
    same(check_label_shift(*data), dense)


def test_a_sparse_mixture_is_the_dense_one(monkeypatch):
    """Its iterations and cells with rows of one sample only."""
    rng = np.random.default_rng(3)
    source = rng.poisson(rng.gamma(0.3, 2, (30, 7))).astype(float)
    source[:3], target = 0.0, rng.poisson(5, 30).astype(float)
    target[[0, 9]] = 0.0
    dense = likeliest_mixture(source, target)
    monkeypatch.setattr(null_mixture, "LARGE", 0)
    monkeypatch.setattr(null_mixture, "SPARSE", 2.0)
    for one, other in zip(likeliest_mixture(source, target), dense, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)


def test_tables_of_many_classes_are_solved_one_by_one_with_the_same_answer(monkeypatch):
    data = drawn(900, 300, 8, calshift.simulate.GaussianSimulation(n_classes=9, imbalance=30))
    together = check_label_shift(*data)
    for module in (nonnegative_shares, overidentification_test):
        monkeypatch.setattr(module, "TOGETHER", 1)
    same(check_label_shift(*data), together)


def test_classes_expected_to_have_a_share_do_not_change_the_shares():
    rng = np.random.default_rng(5)
    X, h, used = rng.random((6, 20, 8)), rng.random((6, 20)), rng.random(8) < 0.5
    G, pull = X.transpose(0, 2, 1) @ X, np.einsum("bls,bl->bs", X, h) * rng.normal(size=(6, 8))
    asked = G, pull, np.ones((6, 8)), pull
    for one, other in zip(solve_shares(*asked, used), solve_shares(*asked), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_small_odd_tables_are_answered():
    """Few rows, hard or flat predictions, weights of any size: finite, and p if and only if df."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        K, n, m = (int(rng.integers(*ends)) for ends in ((2, 8), (2, 60), (1, 60)))
        p, q = (rng.dirichlet(np.full(K, rng.choice([0.05, 0.5, 5])), size) for size in (n, m))
        y = np.concatenate([[0, 1], rng.integers(0, K, n - 2)])
        p = np.eye(K)[p.argmax(axis=1)] if rng.random() < 0.3 else p
        w = rng.exponential(10 ** rng.uniform(-3, 4), n)
        check = check_label_shift(Predictions(p, y, sample_weight=w), None, q, n_boot=19)
        assert np.isfinite(check.statistic)
        assert check.df >= 0
        assert (check.p_value is None) == (check.df == 0)
        json.dumps(check.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"level": 0}, "level must lie between 0 and 1"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"level": "0.05"}, "level must lie between 0 and 1"),
        ({"level": np.nan}, "level must lie between 0 and 1"),
        ({"n_boot": 18}, "n_boot must be a whole number of at least 19"),
        ({"n_boot": 20.5}, "n_boot must be a whole number of at least 19"),
        ({"level": 0.01, "n_boot": 98}, "n_boot must be at least 99 for level=0.01"),
    ],
)
def test_what_is_asked_is_checked(asked, message):
    with pytest.raises(calshift.InvalidInput, match=message):
        check_label_shift(*drawn(50, 50, 0), **asked)


def test_samples_are_checked_against_each_other():
    p, y, q = drawn(50, 50, 0)
    with pytest.raises(calshift.InvalidInput, match="same classes"):
        check_label_shift(p, y, q[:, :3] / q[:, :3].sum(axis=1, keepdims=True))
    with pytest.raises(calshift.InvalidInput, match="at least two classes"):
        check_label_shift(p, 0 * y, q)


# --- the answer


def test_the_least_p_value_and_the_level():
    p, y, q = drawn(1000, 1000, 0)
    check = check_label_shift(p, y, flattened(q))
    assert check.p_value == 1 / 201
    assert check_label_shift(p, y, flattened(q), level=0.004, n_boot=249).rejected
    assert not check_label_shift(p, y, flattened(q), level=0.05, n_boot=19).p_value < 0.05
    assert check_label_shift(p, y, flattened(q), level=0.05, n_boot=19).rejected


@pytest.mark.parametrize("classes", [None, ("a", "b", "c", "a very long name of a class, indeed")])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_text_fits_and_says_it_in_words(classes, power):
    p, y, q = drawn(1000, 1000, 0)
    check = check_label_shift(Predictions(p, y if classes is None else np.array(classes)[y],
                                          classes=classes), None, flattened(q, power))  # fmt: skip
    text = str(check)
    assert max(len(line) for line in text.splitlines()) <= 100
    words = " ".join(text.split())
    if power == 1.0:
        assert "No sign that anything but the class priors changed" in words
        assert "no proof" in words
    else:
        assert "More than the class priors changed" in words
    assert len(check.by_class) == 4
    assert check.by_class[3].name == ("3" if classes is None else classes[3])
    np.testing.assert_allclose(sum(line.observed for line in check.by_class), 1)
    np.testing.assert_allclose(sum(line.expected for line in check.by_class), 1)


def test_many_classes_print_in_a_screen():
    simulation = calshift.simulate.GaussianSimulation(n_classes=40, dimensions=8)
    check = check_label_shift(*drawn(2000, 2000, 0, simulation))
    assert "30 more classes" in str(check)
    assert len(str(check).splitlines()) < 25


def test_plain_json_and_frozen():
    p, y, q = drawn(200, 200, 0)
    check = check_label_shift(p[y != 1], y[y != 1], q)
    plain = json.loads(json.dumps(check.to_dict(), allow_nan=False))
    assert plain["rejected"] is check.rejected
    assert plain["verdict"] == check.verdict
    assert np.shape(plain["residuals"]) == (4, 2)
    assert [line["predicted"] for line in plain["by_class"]] == ["0", "1", "2", "3"]
    assert pickle.loads(pickle.dumps(check)) == check == copy.deepcopy(check)
    with pytest.raises(ValueError, match="read-only"):
        check.residuals[0] = 0
    assert "p_value" in repr(check)
