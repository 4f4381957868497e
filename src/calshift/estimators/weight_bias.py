"""The bias that the noise of estimated class weights adds to the plug-in error.

The regressions are fitted again with weights drawn from their sampling distribution, from sums by
label: the bias is the mean of the plug-in errors of the draws less that of the estimate. A linear
approximation, tr Gam V Gam' M, is not bounded. docs/mathematics.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calshift._core.addable import Tally
from calshift._core.linalg import factor_band, multiply_band, solve_band
from calshift.estimators.regression import EIGENVALUE_FLOOR, ResidualRegression

MOST_AT_ONCE = 2_000_000  # coefficients of several draws


@dataclass(frozen=True)
class WeightDraws:
    """What drawn class weights change, (draws, E).

    Attributes
    ----------
    plugin : the plug-in error with the weights drawn less that with the weights themselves
    noise : the noise of the residuals with the weights drawn, relative to that with the weights
    shares : (E, S) of the classes in the noise of the residuals with the weights themselves
    """

    plugin: np.ndarray
    noise: np.ndarray
    shares: np.ndarray

    def changes(self, noise: np.ndarray) -> np.ndarray:
        """(draws, E) of the errors, from the bias (E,) of the plug-in errors by noise.

        The change of the noise explains at most the whole change of the plug-in error: with few
        rows of a class it is not known well enough to exceed that.
        """
        explained = noise * (self.noise - 1)
        bounds = np.minimum(self.plugin, 0.0), np.maximum(self.plugin, 0.0)
        return np.asarray(self.plugin - np.clip(explained, *bounds))

    def noise_of_counts(
        self, fits: ResidualRegression, by_class: np.ndarray, counts: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """(E,) the part of the bias ``noise`` that is due to random class counts (S,).

        It is sum_y n_y |mean of o in y|^2 with o summed ``by_class`` (E, R, S); the noise of these
        means, 1 / n_y of that of their rows, is subtracted.
        """
        length = np.einsum("ers,ers->es", by_class, multiply_band(*fits.moments, by_class))
        each = (length - self.shares * noise[:, None]) / np.maximum(counts - 1, 1)
        return np.asarray(np.minimum(each.sum(axis=1), noise))


def draw_changes(
    fits: ResidualRegression, by_label: Tally, values: np.ndarray, draws: np.ndarray
) -> WeightDraws:
    """From weights (S,) and (draws, S), and the sums of `LabelSums`."""
    at_once = max(1, MOST_AT_ONCE // fits.coefficients.size)
    plugins = [
        _plugins(fits, by_label, draws[start : start + at_once])
        for start in range(0, len(draws), at_once)
    ]
    here, each = _noise(by_label, values[None]), by_label["noise"] * values**2
    total = each.sum(axis=1, keepdims=True)
    shares = np.divide(each, total, out=np.zeros_like(each), where=total > 0)
    ratio = np.divide(
        _noise(by_label, draws), here, out=np.ones((len(draws), here.shape[1])), where=here > 0
    )
    change = np.concatenate(plugins) - _plugins(fits, by_label, values[None])
    return WeightDraws(change, ratio, shares)


def _noise(by_label: Tally, draws: np.ndarray) -> np.ndarray:
    """(draws, E) noise of the residuals, up to a constant."""
    main, above = by_label["bands"]
    total = (main + 2 * above).sum(axis=1) @ draws.T
    noise = by_label["noise"] @ (draws**2).T
    return np.asarray(np.divide(noise, total**2, out=np.zeros_like(noise), where=total > 0).T)


def _plugins(fits: ResidualRegression, by_label: Tally, draws: np.ndarray) -> np.ndarray:
    """(draws, E) alpha' M alpha of the regressions fitted with these weights.

    Where the source is sparse, so that A is floored, alpha is linear in the weights.
    """
    E, R = fits.coefficients.shape
    b, main, above = (_weigh(sums, draws) for sums in (by_label["residual"], *by_label["bands"]))
    total = (main + 2 * above).sum(axis=1, keepdims=True)
    missing = np.tile(fits.basis.missing, (len(draws), 1))
    M = [np.tile(band, (len(draws), 1)) for band in fits.moments]
    excess = factor_band(
        main - EIGENVALUE_FLOOR * total * M[0], above - EIGENVALUE_FLOOR * total * M[1], 0.0
    )
    sound = (((excess[0] > 0) | missing).all(axis=1)) & (total[:, 0] > 0)
    alpha = solve_band(*factor_band(np.where(missing, 1.0, main), above, 0.0), b)
    if not sound.all():
        rest = b - multiply_band(main, above, np.tile(fits.coefficients, (len(draws), 1)))
        rest *= np.tile(fits.sums.mass.sum(axis=1), len(draws))[:, None] / np.maximum(total, 1e-300)
        rest = rest.reshape(-1, E, R).transpose(1, 2, 0)
        linear = fits.coefficients[..., None] + fits.times(rest)
        alpha = np.where(sound[:, None], alpha, linear.transpose(2, 0, 1).reshape(-1, R))
    plugin = (alpha * multiply_band(M[0], M[1], alpha)).sum(axis=1)
    return np.asarray(np.minimum(plugin, 1.0).reshape(-1, E))  # no error is larger


def _weigh(sums: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """(draws E, R) sums over labels (E, R, S), weighted."""
    found = (sums @ draws.T).transpose(2, 0, 1)
    return np.asarray(found.reshape(-1, found.shape[2]))
