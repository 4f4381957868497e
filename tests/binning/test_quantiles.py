"""Order statistics from counts of bits are those of sorted scores, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calshift import Predictions
from calshift.binning import quantiles
from calshift.binning.edges import equal_mass_edges
from calshift.binning.events import Events
from calshift.binning.quantiles import order_statistics
from calshift.engines import Arrays


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("K", [2, 7])
def test_edges_are_those_of_sorted_scores(kind, weighed, K):
    rng = np.random.default_rng([K, weighed])
    p = rng.dirichlet(np.full(K, 0.2), 3000).astype(kind)
    p[:40] = np.eye(K)[0]  # ties, and exact zeros
    weight = rng.integers(1, 4, 3000).astype(float) if weighed else None
    engine = Arrays(Predictions(p, sample_weight=weight), rows=701)
    for bins in (1, 2, 15, 40):
        found = order_statistics(engine, Events("classwise", K), bins)
        for k in range(K):
            expected = equal_mass_edges(p[:, k], weight, bins)
            assert found[k].dtype == expected.dtype
            assert found[k].tolist() == expected.tolist()


@given(
    f=st.lists(st.sampled_from([0.0, 1e-300, 0.1, 0.5, 0.5000000001, 1.0]), min_size=1),
    bins=st.integers(1, 9),
)
@settings(max_examples=60)
def test_ties_and_extremes(f, bins):
    engine = Arrays(Predictions(np.array(f)), rows=3)
    found = order_statistics(engine, Events("binary", 2), bins)[0]
    assert found.tolist() == equal_mass_edges(np.array(f), None, bins).tolist()


def test_counts_stay_within_their_room(monkeypatch):
    """With little room more passes are made, each with fewer bits, to the same answer."""
    monkeypatch.setattr(quantiles, "MOST_COUNTS", 2**12)
    p = np.random.default_rng(3).dirichlet(np.ones(5), 2000)
    passes = []

    class Counting(Arrays):
        def total(self, kernel):
            found = super().total(kernel)
            passes.append(np.size(found))
            return found

    found = order_statistics(Counting(Predictions(p)), Events("classwise", 5), 15)
    for k in range(5):
        assert found[k].tolist() == equal_mass_edges(p[:, k], None, 15).tolist()
    assert max(passes) <= 2**12
    assert len(passes) > 8
