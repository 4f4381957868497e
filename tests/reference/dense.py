"""How every row moves the fitted residuals, with dense matrices over rows, and what follows.

The formulas of docs/mathematics.md 4 and 8 in the order in which they stand there, without sums
over bins: a design matrix, one move a row, and the law that the moves give. The basis (which bins,
which hats), the influence functions phi of the class weights, and draws of the weights are taken as
given; the regressions are fitted again for each draw, from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from brute_force import bin_of, binned_places, mass_edges, scores_and_events, unfold
from scipy import linalg, optimize, stats

import calshift
from calshift.estimators.regression import fit_residuals
from calshift.estimators.statistics_sums import bin_sums_of

FLOOR = 0.5  # of the eigenvalues of A / sum w relative to M, on hats
LEAST_SLACK = 0.1  # of 1 - l
ROUNDING = 1e-10  # of a fit


@dataclass
class Problem:
    """One event: scores and residuals of the source, and the basis at source and target rows."""

    u: np.ndarray
    X: np.ndarray
    Xt: np.ndarray
    mean: np.ndarray  # (n,) the target's mean score in the bin of each source row
    bins: np.ndarray  # (n,) the bin of each source row
    room_up: np.ndarray | None = None  # how far a frequency may lie above the score, on hats
    room_down: np.ndarray | None = None


def problems(kind, p, y, q, w, bins):
    """One problem for each event; q is p for an error with labels."""
    here = scores_and_events(kind, p.tolist(), y.tolist())
    there = scores_and_events(kind, q.tolist())
    if bins == "auto":
        return _on_hats(kind, p, y, q, w, here, there)
    found = []
    for (f, event), (ft, _) in zip(here, there, strict=True):
        edges = mass_edges(ft, bins) if isinstance(bins, int) else bins
        source, target, _ = binned_places(f, ft, edges, [w[label] > 0 for label in y])
        indicator = np.eye(max(source + target) + 1)
        mine, others = (np.array([bin_of(score, edges) for score in some]) for some in (f, ft))
        mean, u = means(mine, others, ft), np.subtract(event, f)
        found.append(Problem(u, indicator[source], indicator[target], mean, mine))
    return found


def _on_hats(kind, p, y, q, w, here, there):
    edges = calshift.bin_edges(q, kind=kind)
    sums = calshift.accumulate(p, y, q, edges=edges)
    found = []
    for k, ((f, event), (ft, _)) in enumerate(zip(here, there, strict=True)):
        height = hats_of(sums, k, np.asarray(w))
        source, target = (edges.locate(k, np.array(scores)) for scores in (f, ft))
        room, u = means(target, target, ft), np.subtract(event, f)
        mean = means(source, target, ft)
        found.append(Problem(u, height[source], height[target], mean, source, 1 - room, room))
    return found


def means(bins, target_bins, scores):
    """The target's mean score in each of these bins, 0 where it has no row."""
    score, place = np.array(scores), np.array(target_bins)
    return np.array([score[place == b].mean() if (place == b).any() else 0.0 for b in bins])


def hats_of(sums, k, w):
    """(B, L) the hats of an event at its bins."""
    basis = fit_residuals(bin_sums_of(sums, w / w.max()), sums.edges).basis
    one = np.zeros((len(basis.left), basis.width))
    hats = []
    for knot in range(basis.count[k]):
        one[:] = 0.0
        one[k, knot] = 1.0
        hats.append(basis.evaluate(one)[k, : len(sums.edges[k]) + 1])
    return np.stack(hats, axis=1)


@dataclass
class Moved:
    """One event's fit in coordinates in which M = 1, and by how much each row moves them."""

    a: np.ndarray  # (L,)
    inverse: np.ndarray
    g: np.ndarray  # (n,) fitted residual of the source rows, and of the target's
    gt: np.ndarray
    e: np.ndarray
    slack: np.ndarray
    x: np.ndarray  # (n, L), (m, L)
    xt: np.ndarray
    xo: np.ndarray  # (observations outside both samples, L)
    plain: np.ndarray  # (n, L) x without factors for leverage, and (m, L) xt
    plain_t: np.ndarray
    apart: np.ndarray  # (n, L) by what far exceeds x, and (n, L) the part of x through the weights
    through: np.ndarray
    far: np.ndarray  # (n, L) x with the residual as it moves the fit when the row is left out
    lean: np.ndarray  # (L,) sum_i (l_i - the mean near by) o_i / (1 - l_i)
    S: np.ndarray
    C: np.ndarray  # by which it is corrected for the bias of squared residuals
    at: np.ndarray  # (m, L) the basis at the target in these coordinates
    bias: float  # expected excess of |a|^2
    changes: np.ndarray | None = None  # (draws,) of the error by drawn weights


def moved(problem, w, y, phi, phi_target, outside, stratified=False, drawn=None):
    """alpha, o, l, Gam and the moves x_i, x_j of one event; w: (K,); phi: (n, K), (m, K), (o, K).

    A weight moves the fit without a row through the others' residuals: through e / (1 - l) of each.
    ``drawn`` (draws, K) are weights from the distribution of estimated ones.
    """
    X, Xt, u, w_i = problem.X, problem.Xt, problem.u, w[y]
    n, m = len(X), len(Xt)
    M, A = Xt.T @ Xt / m, X.T @ (w_i[:, None] * X)
    if problem.room_up is None:
        inverse = np.linalg.inv(A)
    else:  # A v = ratio M v
        ratio, V = linalg.eigh(A / w_i.sum(), M)
        inverse = V @ np.diag(1 / np.maximum(ratio, FLOOR)) @ V.T / w_i.sum()
    alpha = inverse @ X.T @ (w_i * u)
    e = u - X @ alpha
    leverage = w_i * np.einsum("il,lk,ik->i", X, inverse, X)
    slack = np.maximum(1 - leverage, LEAST_SLACK)
    o = (w_i * e)[:, None] * X @ inverse
    apart = e / slack
    gam = np.stack([(inverse @ X[y == c].T @ apart[y == c]) for c in range(len(w))], axis=1)
    through = phi @ gam.T / n
    plain = np.stack([(inverse @ X[y == c].T @ e[y == c]) for c in range(len(w))], axis=1)
    root = linalg.cholesky(M)  # M = root' root, so that |root v|^2 = v' M v
    x = (o / np.sqrt(slack)[:, None] + through) @ root.T
    far = (o / slack[:, None] + through) @ root.T
    wider = far - x
    between = x.T @ x
    if stratified:
        x, far = within(x, y), within(far, y)
    between = between - x.T @ x
    xt, xo = phi_target @ gam.T / m @ root.T, outside @ gam.T @ root.T
    V_i = X @ inverse
    expected = (w_i * e) ** 2 / slack
    fitted = np.einsum("il,jl->ij", X, V_i) ** 2 @ expected  # variance of g at each row
    near = X @ ((X.T @ w_i**2) / (X.T @ w_i)) * leverage / w_i
    each = leverage * expected - w_i**2 * fitted
    pull = leverage / slack
    C = root @ V_i.T @ (each[:, None] * V_i) @ root.T
    cross = wider.T @ through @ root.T  # which x' x lacks
    S = x.T @ x + xt.T @ xt + xo.T @ xo + cross + cross.T
    bias, changes = np.trace(S) + np.trace(C), None
    if drawn is not None:
        own = np.sum(expected * ((V_i @ root.T) ** 2).sum(axis=1)) + np.trace(C)
        trace_weight = ((V_i @ root.T) ** 2).sum(axis=1)
        about = cell_means(e, problem.bins * len(w) + y)
        noise = np.array([noise_of(v[y], about, trace_weight) for v in (w, *drawn)])
        mass = w[y].sum()
        refitted = np.array(
            [plugin_of(problem, v[y], M, alpha, inverse * mass) for v in (w, *drawn)]
        )
        plugins = refitted[1:] - refitted[0]
        explained = own * (noise[1:] / noise[0] - 1)
        changes = plugins - np.clip(explained, np.minimum(plugins, 0), np.maximum(plugins, 0))
        limited = max(plugins.mean(), 0)
        weights = through @ root.T, xt, xo  # what moves the fit by the weights, to first order
        share = np.bincount(y, (w_i * about) ** 2 * trace_weight, len(w))
        left_out = (o / slack[:, None]) @ root.T
        common = bias_in_common(left_out, weights, y, own, own * share / share.sum(), limited)
        bias = own + changes.mean() + common - np.trace(between)
    return Moved(
        a=root @ alpha, inverse=inverse, g=X @ alpha, gt=Xt @ alpha, e=e, slack=slack,
        x=x, xt=xt, xo=xo, far=far, apart=wider, through=through @ root.T,
        plain=(o + phi @ plain.T / n) @ root.T, plain_t=phi_target @ plain.T / m @ root.T,
        lean=root @ (o.T @ (pull - near * (1 + pull))),
        S=S, C=C, at=Xt @ np.linalg.inv(root), bias=bias, changes=changes,
    )  # fmt: skip


def bias_in_common(left_out, weights, y, own, own_by_class, limited):
    """X: the bias by residuals and priors together, less that of class counts.

    ``limited`` is the bias of the priors alone as draws find it, which limits the linear one.
    """
    moved, linear = weights[0], sum(np.sum(part**2) for part in weights)
    counts = 0.0  # noise of class counts, on which the priors do not depend
    for c, part in enumerate(own_by_class):
        total = left_out[y == c].sum(axis=0)
        counts += (total @ total - part) / max(np.sum(y == c) - 1, 1)
    counts = min(counts, own)
    inside = 2 * np.sum(within(left_out, y) * moved)
    linear += 2 * np.sum(left_out * moved) - inside + counts  # of the priors, not the weights
    most = 2 * np.sqrt(max(own - counts, 0) * limited)
    if linear > limited:
        inside *= np.sqrt(limited / linear)
    return np.clip(inside, -most, most) - counts


def cell_means(values, cell):
    """The mean of each row's cell, a bin and a label: scores differ little within it."""
    total, count = np.bincount(cell, values), np.bincount(cell)
    return total[cell] / count[cell]


def noise_of(w_i, e, trace_weight):
    """What the noise of residuals adds to |a|^2 with these weights, up to a factor."""
    return np.sum(w_i**2 * e**2 * trace_weight) / w_i.sum() ** 2


def plugin_of(problem, w_i, M, alpha, inverse):
    """The mean of g^2 over the target, at most 1, of a fit with these weights of the rows.

    Where A is below its floor the fit is linear in the weights, around the fit that was made, whose
    inverse is for weights that sum to 1.
    """
    X, u = problem.X, problem.u
    A = X.T @ (w_i[:, None] * X)
    if linalg.eigvalsh(A / w_i.sum(), M)[0] > FLOOR:
        fit = np.linalg.solve(A, X.T @ (w_i * u))
    else:
        fit = alpha + inverse @ X.T @ (w_i * (u - X @ alpha)) / w_i.sum()
    return min(fit @ M @ fit, 1.0)


def within(values, y):
    """Less the mean of its class."""
    out = np.array(values, dtype=float)
    for c in np.unique(y):
        out[y == c] -= out[y == c].mean(axis=0)
    return out


@dataclass
class SamplingDistribution:
    """Moments of plug-in / kap ~ noncentral chi-square."""

    plug: float
    bias: float
    V1: float
    T: float

    @property
    def estimate(self):
        return self.plug - self.bias

    @property
    def standard_error(self):
        return np.sqrt(max(self.V1 - 4 * self.T, 0) + 2 * self.T)

    def interval(self, level):
        """{t >= 0 : P(|root of a plug-in - mean root| >= that of the one found | t) >= 1 - level}.

        Where only one side of the mean counts, 70% of 1 - level suffice.

        Roots of plug-ins below the bias count as the root of the bias, the one found included. A
        plug-in over kap is noncentral chi-square, df = bias / kap, noncentrality t / kap.
        """
        plug = max(self.plug, self.bias)
        found = plug - self.bias
        if self.doubt(plug, 0.0) >= 1 - level:
            low = 0.0
        else:
            low = optimize.brentq(
                lambda t: self.doubt(plug, t) - (1 - level), 0.0, found, xtol=1e-15
            )
        high = plug + self.bias
        while self.doubt(plug, high) >= 1 - level:
            high *= 2
        high = optimize.brentq(lambda t: self.doubt(plug, t) - (1 - level), found, high, xtol=1e-15)
        return low, high

    def doubt(self, plug, t):
        """Two tails, of which the lower is all or nothing at the bias."""
        kap = (self.V1 / 4 + self.T / 4) / (self.plug + self.bias / 4)
        law = stats.ncx2(self.bias / kap, t / kap) if t > 0 else stats.chi2(self.bias / kap)
        mean, root, least = (np.sqrt(v / kap) for v in (t + self.bias, plug, self.bias))
        if root >= mean:
            other = 2 * mean - root
            both = other >= least
            return law.sf(root**2) + law.cdf(other**2) if both else law.sf(root**2) / 0.7
        return law.cdf(root**2) + law.sf((2 * mean - root) ** 2)


class DrawnDistribution:
    """The law of an error whose class weights are estimated, and known by draws.

    Distances of the residuals' part and of the weights' part from the estimate add in squares.
    """

    def __init__(self, whole, changes):
        even = (changes[: len(changes) // 2] + changes[len(changes) // 2 :]) / 2  # antithetic pairs
        self.whole, self.changes, mean = whole, changes, changes.mean()
        self.plug, self.bias, self.V1, self.T = whole.plug, whole.bias, whole.V1, whole.T
        directions = 2 * mean**2 / even.var() if mean > 0 else np.inf  # of equal importance
        self.known = max(mean, 0) - min(max(mean, 0), mean / directions)
        self.residuals = SamplingDistribution(
            max(whole.plug, 0), max(whole.bias - mean, 0), max(whole.V1 - changes.var(), 0),
            max(whole.T - even.var() / 2, 0),
        )  # fmt: skip

    @property
    def estimate(self):
        return self.whole.estimate

    @property
    def standard_error(self):
        both = np.hypot(self.residuals.standard_error, self.changes.std())
        return max(self.whole.standard_error, both)

    def interval(self, level):
        ends = np.percentile(self.changes, [50 * (1 - level), 50 * (1 + level)]) - self.known
        low, high = self.residuals.interval(level)
        down = np.hypot(max(self.residuals.estimate - low, 0), min(ends[0], 0))
        up = np.hypot(max(high - self.residuals.estimate, 0), max(ends[1], 0))
        estimate = max(self.plug, 0) - self.bias
        return max(estimate - down, 0), max(estimate + up, 0)


def square_law(events, y, labelled=False, stratified=False):
    """The law of the mean over the events: stacked coordinates, each over sqrt E."""
    E, n, names = len(events), len(events[0].x), ("x", "far", "xt", "xo", "apart", "through")
    stacked = (np.hstack([getattr(one, k) for one in events]) for k in names)
    x, far, xt, xo, wider, through = (matrix / np.sqrt(E) for matrix in stacked)
    a = np.concatenate([one.a for one in events]) / np.sqrt(E)
    cross = wider.T @ through
    S = x.T @ x + xt.T @ xt + xo.T @ xo + cross + cross.T
    lean = np.mean([2 * one.a @ one.lean for one in events])
    gbar = np.mean([one.gt**2 for one in events], axis=0)  # g_j
    apart = gbar - gbar.mean()
    if labelled:  # the rows of the source are those of the target: their moves add
        own = within(apart, y) if stratified else apart
        V1 = np.sum((2 * far @ a + own / n) ** 2)
    else:
        m = len(gbar)
        V1 = 4 * a @ (far.T @ far + xt.T @ xt + xo.T @ xo) @ a
        V1 += apart @ apart / m**2 + 4 * np.mean(apart * (xt @ a))
    bias = np.mean([max(one.bias, 0.0) for one in events])
    law = SamplingDistribution(a @ a + lean, bias, V1, np.sum(S**2))
    if events[0].changes is None:
        return law
    return DrawnDistribution(law, np.mean([one.changes for one in events], axis=0))


def gaps(problem, one):
    """|d| at every target row: |g| with its noise taken out."""
    noise = np.einsum("jl,lk,jk->j", one.at, one.S + one.C, one.at) - 2 * one.gt * (
        one.at @ one.lean
    )
    d = np.array([unfold(abs(g), s2, 1) for g, s2 in zip(one.gt, noise, strict=True)])
    if problem.room_up is None:
        return d
    return np.minimum(d, np.where(one.gt > 0, problem.room_up, problem.room_down))


def left_out_fit(problem, one, w_i):
    """The fit at each source row, made without the row."""
    fits = one.g - (1 - one.slack) / one.slack * one.e
    for i in range(len(w_i) if problem.room_up is None else 0):  # in a bin: the mean of the others
        others = (problem.X @ problem.X[i] > 0) & (np.arange(len(w_i)) != i)
        if one.slack[i] > LEAST_SLACK:
            fits[i] = w_i[others] @ problem.u[others] / w_i[others].sum()
    return fits


def left_out_sign(problem, one, w_i):
    """That fit in standard errors, held to [-1, 1]; errors that it has if the scores are true."""
    spread = one.inverse @ problem.X.T * (w_i * np.sqrt(problem.mean * (1 - problem.mean)))
    variance = ((problem.X @ spread) ** 2).sum(axis=1)
    error = np.maximum(np.sqrt(variance), ROUNDING)
    return np.clip(left_out_fit(problem, one, w_i) / error, -1, 1)


def signed(problem, one, w, y, phi, phi_target, outside):
    """sum w u sign(g) / sum w: with left-out signs, and how rows and weights move it."""
    w_i, W = w[y], w[y].sum()
    least = w_i @ (problem.u * left_out_sign(problem, one, w_i)) / W
    along = problem.u * np.sign(one.g)
    mean = w_i @ along / W
    slope = np.array([np.sum((along - mean)[y == c]) / W for c in range(len(w))])
    source = w_i * (along - mean) / W + phi @ slope / len(y)
    return least, source, phi_target @ slope / len(phi_target), outside @ slope
