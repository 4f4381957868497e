"""The formulas of docs/mathematics.md 2 to 4 as plain loops over rows and pairs of rows.

Slow on purpose and without calshift: what the library must agree with. Rows are lists, a sample
weight is a row repeated, and "same bin" is a kernel like any other.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, optimize
from scipy.special import ndtr

# --- samples ----------------------------------------------------------------------------------


def sample(kind, seed, n=90, m=70, tied=False):
    """Source rows and labels, target rows, and weights that agree with the source's class shares.

    Three classes (binary: two, as one column) whose mix turns round from source to target;
    ``tied`` puts the probabilities on a grid of twentieths.
    """
    rng = np.random.default_rng(seed)
    prior = np.array([0.65, 0.35] if kind == "binary" else [0.5, 0.3, 0.2])
    y, y_target = rng.choice(len(prior), n, p=prior), rng.choice(len(prior), m, p=prior[::-1])
    p, p_target = (_softmax_rows(rng, labels, len(prior), tied) for labels in (y, y_target))
    share = np.array([np.mean(y == c) for c in range(len(prior))])
    return p, y, p_target, prior[::-1] / share


def _softmax_rows(rng, y, n_classes, tied):
    logits = 1.5 * np.eye(n_classes)[y] + rng.normal(size=(len(y), n_classes))
    p = np.exp(1.4 * logits)
    p /= p.sum(axis=1, keepdims=True)
    if tied:
        twentieths = np.floor(20 * p[:, 1:])
        p = np.column_stack([20 - twentieths.sum(axis=1), twentieths]) / 20
    return p[:, 1] if n_classes == 2 else p


def rows(values):
    """An array as plain lists."""
    return None if values is None else values.tolist()


# --- bins (docs/mathematics.md 2) -------------------------------------------------------------


def mass_edges(scores, number):
    """s = sort(scores); the different values among s[ceil(k m / B)], k = 1..B-1, above s[0].

    Where B > m the index may reach m: there is no such score, so no such edge.
    """
    s, m = sorted(scores), len(scores)
    edges = set()
    for k in range(1, number):
        index = (k * m + number - 1) // number
        if index < m and s[index] > s[0]:
            edges.add(s[index])
    return sorted(edges)


def width_edges(number):
    """k / B for k = 1..B-1."""
    return [k / number for k in range(1, number)]


def bin_of(score, edges):
    """How many edges are at or below the score: a bin holds its lower edge."""
    return sum(1 for edge in edges if edge <= score)


def group_of_bins(n_bins, *members):
    """Group of every bin once thin bins joined their left neighbour (the first: its right).

    ``members`` are lists of bin numbers; a bin is thin if it has fewer than two of any of them.
    """
    groups = [[b] for b in range(n_bins)]
    while len(groups) > 1:
        thin = [
            g
            for g, group in enumerate(groups)
            if any(sum(1 for b in bins if b in group) < 2 for bins in members)
        ]
        if not thin:
            break
        left = max(thin[0] - 1, 0)
        groups[left : left + 2] = [groups[left] + groups[left + 1]]
    return [g for b in range(n_bins) for g, group in enumerate(groups) if b in group]


def binned_places(scores_source, scores_target, edges, source_counts):
    """Groups of the source rows, of the target rows, and the number of bins that joined.

    ``source_counts[i]``: does source row i help to make its bin thick enough? None: no row must.
    """
    source = [bin_of(f, edges) for f in scores_source]
    target = [bin_of(f, edges) for f in scores_target]
    members = [target]
    if source_counts is not None:
        members.append([b for b, counts in zip(source, source_counts, strict=True) if counts])
    group = group_of_bins(len(edges) + 1, *members)
    joined = len(edges) + 1 - len(set(group))
    return [group[b] for b in source], [group[b] for b in target], joined


# --- kernels (docs/mathematics.md 3) ----------------------------------------------------------


def same(here, there):
    """1 in the same bin, else 0."""
    return 1.0 if here == there else 0.0


def dirichlet(h):
    """k(f_j, f_i) = density of Dirichlet(f_i / h + 1) at f_j."""

    def kernel(at, centre):
        alpha = [c / h + 1 for c in centre]
        log_density = math.lgamma(sum(alpha))
        for a, x in zip(alpha, at, strict=True):
            if x == 0 and a > 1:
                return 0.0
            log_density += ((a - 1) * math.log(x) if x > 0 else 0.0) - math.lgamma(a)
        return math.exp(log_density)

    return kernel


def triweight(h):
    """k(f_j, f_i) = (1 - d^2 / h^2)^3 for a Euclidean distance d < h, else 0."""

    def kernel(at, centre):
        d2 = sum((a - c) ** 2 for a, c in zip(at, centre, strict=True))
        return (1 - d2 / h**2) ** 3 if d2 < h**2 else 0.0

    return kernel


KERNELS = {"dirichlet": dirichlet, "triweight": triweight}


def on_the_line(name, f):
    """Where a single score stands for a kernel: (1 - f, f) on the simplex, or f itself."""
    return (1 - f, f) if name == "dirichlet" else (f,)


# --- kinds (docs/mathematics.md 1) ------------------------------------------------------------


def scores_and_events(kind, p, y=None):
    """One (scores, events) for each event; rows of p are numbers (binary) or lists."""
    labels = y if y is not None else [None] * len(p)
    if kind == "binary":
        return [(list(p), [float(label == 1) for label in labels])]
    if kind == "classwise":
        return [
            ([row[c] for row in p], [float(label == c) for label in labels])
            for c in range(len(p[0]))
        ]
    if kind == "top-label":
        top = [list(row).index(max(row)) for row in p]
        hits = [float(label == c) for label, c in zip(labels, top, strict=True)]
        return [([max(row) for row in p], hits)]
    raise ValueError(kind)


def unit_vectors(y, n_classes):
    """e_y for every label."""
    return [[float(label == c) for c in range(n_classes)] for label in y]


# --- the paper's estimator (docs/mathematics.md 2) ----------------------------------------------


def paper_shifted(kernel, place_source, event, weight, place_target, forecast, norm):
    """mean_j ||R_j - f_j||_p^p, a ratio of the source's sum to the target's, itself left out.

    R_j = [(1/n) sum_i k(j, i) w_i event_i] / [(1/(m-1)) sum_{i != j} k(j, i)]
    """
    n, m = len(place_source), len(place_target)
    total = 0.0
    for j in range(m):
        below = 0.0
        for i in range(m):
            if i != j:
                below += kernel(place_target[j], place_target[i]) / (m - 1)
        above = [0.0] * len(forecast[j])
        for i in range(n):
            k = kernel(place_target[j], place_source[i])
            for c in range(len(above)):
                above[c] += k * weight[i] * event[i][c] / n
        for c in range(len(above)):
            total += abs(above[c] / below - forecast[j][c]) ** norm
    return total / m


def paper_labelled(kernel, place, event, forecast, norm):
    """mean_j ||R_j - f_j||_p^p with R_j = sum_{i != j} k(j, i) event_i / sum_{i != j} k(j, i)."""
    n = len(place)
    total = 0.0
    for j in range(n):
        above, below = [0.0] * len(forecast[j]), 0.0
        for i in range(n):
            if i == j:
                continue
            k = kernel(place[j], place[i])
            below += k
            for c in range(len(above)):
                above[c] += k * event[i][c]
        for c in range(len(above)):
            total += abs(above[c] / below - forecast[j][c]) ** norm
    return total / n


def paper_binned(kind, norm, edges_for, p, y, p_target=None, w=None):
    """The paper's error of every event, and the bins joined; ``edges_for(scores)`` gives edges."""
    here = scores_and_events(kind, p, y)
    there = here if p_target is None else scores_and_events(kind, p_target)
    errors, joined = [], 0
    for (f, event), (f_target, _) in zip(here, there, strict=True):
        at, at_target, joins = binned_places(f, f_target, edges_for(f_target), None)
        event, forecast = [[e] for e in event], [[f_j] for f_j in f_target]
        joined += joins
        if p_target is None:
            errors.append(paper_labelled(same, at, event, forecast, norm))
        else:
            weight = [w[label] for label in y]
            errors.append(paper_shifted(same, at, event, weight, at_target, forecast, norm))
    return errors, joined


def paper_kernel(kind, norm, name, h, p, y, p_target=None, w=None):
    """The paper's error of every event with a kernel in the place of bins."""
    kernel = KERNELS[name](h)
    weight = None if w is None else [w[label] for label in y]
    errors = []
    for place, event, place_target, forecast in _kernel_rows(kind, name, p, y, p_target):
        if p_target is None:
            errors.append(paper_labelled(kernel, place, event, forecast, norm))
        else:
            errors.append(paper_shifted(kernel, place, event, weight, place_target, forecast, norm))
    return errors


def _kernel_rows(kind, name, p, y, p_target):
    """Places, event vectors, target places and forecasts: one tuple for each event."""
    p_there = p if p_target is None else p_target
    if kind == "canonical":
        return [(p, unit_vectors(y, len(p[0])), p_there, p_there)]
    of_events = []
    here, there = scores_and_events(kind, p, y), scores_and_events(kind, p_there)
    for (f, event), (f_there, _) in zip(here, there, strict=True):
        place = [on_the_line(name, x) for x in f]
        place_there = [on_the_line(name, x) for x in f_there]
        of_events.append((place, [[e] for e in event], place_there, [[x] for x in f_there]))
    return of_events


# --- plug-in and debiased (docs/mathematics.md 4) -----------------------------------------------


def folded_mean(d, s):
    """E|Z| for Z normal(d, s^2): s sqrt(2/pi) exp(-d^2 / 2 s^2) + d (1 - 2 Phi(-d/s))."""
    return s * math.sqrt(2 / math.pi) * math.exp(-(d**2) / (2 * s**2)) + d * (1 - 2 * ndtr(-d / s))


def folded_moment(d, s, norm):
    """E|Z|^p for Z normal(d, s^2), integrated on either side of the fold at 0."""

    def density(z):
        return abs(d + s * z) ** norm * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    fold = min(max(-d / s, -12.0), 12.0)
    parts = [(-12.0, fold), (fold, 12.0)]
    return sum(
        integrate.quad(density, low, high, epsabs=1e-15, epsrel=1e-12, limit=200)[0]
        for low, high in parts
        if high > low
    )


def unfold(size, s2, norm):
    """The d >= 0 with E|normal(d, s^2)|^p = size^p; 0 if size^p is less than noise alone gives.

    A variance that came out at or below 0 leaves nothing to take away.
    """
    if s2 <= 0 or size == 0:
        return size
    s = math.sqrt(s2)

    def excess(d):
        moment = folded_mean(d, s) if norm == 1 else folded_moment(d, s, norm)
        return moment - size**norm

    if excess(0.0) >= 0:
        return 0.0
    return optimize.brentq(excess, 0.0, 1.001 * size, xtol=1e-16, rtol=1e-14)  # E|Z|^p >= d^p


def without_noise(size, s2, norm):
    """|g|^p with the noise taken out: exactly for p = 2, through the folded normal otherwise."""
    return size**2 - s2 if norm == 2 else unfold(size, s2, norm) ** norm


def bin_residual(u, w):
    """U_b = sum w u / W_b, and its noise s_b^2, from the rows of one bin.

    l_i = w_i / W_b, o_i = l_i (u_i - U_b), L = sum_i l_i^2

    s_b^2 = sum_i [ o_i^2 (1 + l_i - L) - 2 (l_i - L) U_b o_i ] / (1 - l_i)
    """
    W = sum(w)
    U = sum(w_i * u_i for w_i, u_i in zip(w, u, strict=True)) / W
    L = sum(w_i**2 for w_i in w) / W**2
    s2 = 0.0
    for w_i, u_i in zip(w, u, strict=True):
        leverage = w_i / W
        o = leverage * (u_i - U)
        s2 += (o**2 * (1 + leverage - L) - 2 * (leverage - L) * U * o) / (1 - leverage)
    return U, s2


def bin_terms(kind, edges_for, p, y, p_target=None, w=None):
    """For every event a list of (P_b, U_b, s_b^2) over the bins, and how many bins joined."""
    weight = [1.0] * len(y) if w is None else [w[label] for label in y]
    here = scores_and_events(kind, p, y)
    there = here if p_target is None else scores_and_events(kind, p_target)
    terms, joined = [], 0
    for (f, event), (f_target, _) in zip(here, there, strict=True):
        positive = [w_i > 0 for w_i in weight]
        at, at_target, joins = binned_places(f, f_target, edges_for(f_target), positive)
        joined += joins
        of_event = []
        for b in sorted(set(at_target)):
            inside = [i for i in range(len(f)) if at[i] == b]
            U, s2 = bin_residual([event[i] - f[i] for i in inside], [weight[i] for i in inside])
            P = sum(1 for j in at_target if j == b) / len(at_target)
            of_event.append((P, U, s2))
        terms.append(of_event)
    return terms, joined


def plugin_binned(terms, norm):
    """sum_b P_b |U_b|^p for every event."""
    return [sum(P * abs(U) ** norm for P, U, _ in of_event) for of_event in terms]


def debiased_binned(terms, norm):
    """sum_b P_b (|U_b|^p without its noise) for every event."""
    return [sum(P * without_noise(abs(U), s2, norm) for P, U, s2 in of_event) for of_event in terms]


def kernel_terms(kind, name, h, p, y, p_target=None, w=None):
    """For every event a list over target rows j of lists over components c of (g_jc, s_jc^2).

    a_ji = w_i k(f_j, f_i) / sum_i w_i k(f_j, f_i), u_i = event_i - f_i, g_jc = sum_i a_ji u_ic,
    s_jc^2 = sum_i a_ji^2 e^2 / (1 - 2 a_ji + S_j) - 2 g_jc (r - r0), e = u_ic - g_jc,
    S_j = sum_i a_ji^2, r = sum_i a_ji^2 e / (1 - a_ji), and r0 the same with all weights 1
    """
    kernel = KERNELS[name](h)
    weight = [1.0] * len(y) if w is None else [w[label] for label in y]
    n = len(y)
    events = _kernel_rows(kind, name, p, y, p_target)
    forecasts = [forecast for *_, forecast in _kernel_rows(kind, name, p, y, None)]
    terms = []
    for (place, event, place_target, _), forecast in zip(events, forecasts, strict=True):
        of_event = []
        for at in place_target:
            k = [weight[i] * kernel(at, place[i]) for i in range(n)]
            total = sum(k)
            a = [k_i / total for k_i in k]
            plain = [kernel(at, place[i]) if weight[i] > 0 else 0.0 for i in range(n)]
            a0 = [k_i / sum(plain) for k_i in plain]
            S = sum(a_i**2 for a_i in a)
            of_row = []
            for c in range(len(event[0])):
                u = [event[i][c] - forecast[i][c] for i in range(n)]
                g = sum(a[i] * u[i] for i in range(n))
                g0 = sum(a0[i] * u[i] for i in range(n))
                spread = lean = 0.0
                for i in range(n):
                    spread += a[i] ** 2 * (u[i] - g) ** 2 / (1 - 2 * a[i] + S)
                    lean += a[i] ** 2 * (u[i] - g) / (1 - a[i])
                    lean -= a0[i] ** 2 * (u[i] - g0) / (1 - a0[i])
                of_row.append((g, spread - 2 * g * lean))
            of_event.append(of_row)
        terms.append(of_event)
    return terms


def plugin_kernel(terms, norm):
    """mean_j sum_c |g_jc|^p for every event."""
    return [
        sum(abs(g) ** norm for of_row in of_event for g, _ in of_row) / len(of_event)
        for of_event in terms
    ]


def debiased_kernel(terms):
    """CE_2^2 = mean_j sum_c (g_jc^2 - s_jc^2) for every event."""
    return [
        sum(g**2 - s2 for of_row in of_event for g, s2 in of_row) / len(of_event)
        for of_event in terms
    ]
