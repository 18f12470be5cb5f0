"""Seeded families of reduced games, easy and adversarial, for tests of the float64 solver.

Every family is a function of one generator that returns a valid game: the Gram matrix of the
remainders is positive semidefinite exactly, not only up to rounding. The families named ``hard_*``
are in the hard case exactly (their answer has status "several"), so data meant to cancel there
are short dyadic numbers; ``near_*`` are the same games disturbed by 1e-16 to 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.random import Generator


@dataclass(frozen=True)
class Problem:
    """One reduced game; ``data`` is the argument list of ``solve_exact``."""

    name: str
    sigma: tuple[float, ...]
    eta: tuple[float, ...]
    zeta: tuple[float, ...]
    r_yy: float
    r_yz: float
    r_zz: float
    nullity: int
    gamma: float

    @property
    def data(self) -> tuple:
        grams = (self.r_yy, self.r_yz, self.r_zz)
        return (self.sigma, self.eta, self.zeta, *grams, self.nullity, self.gamma)


def problems(count: int, seed: int = 0) -> list[Problem]:
    """``count`` games, the families taking turns; game i depends on (seed, i) only."""
    names = list(FAMILIES)
    made = []
    for i in range(count):
        name = names[i % len(names)]
        made.append(replace(FAMILIES[name](np.random.default_rng([seed, i])), name=f"{name}-{i}"))
    return made


def _problem(sigma, eta, zeta, gram, nullity, gamma) -> Problem:
    vectors = (tuple(float(v) for v in vector) for vector in (sigma, eta, zeta))
    r_yy, r_yz, r_zz = (float(v) for v in gram)
    return Problem("", *vectors, *_valid_gram(r_yy, r_yz, r_zz), int(nullity), float(gamma))


def _valid_gram(r_yy: float, r_yz: float, r_zz: float) -> tuple[float, float, float]:
    """The nearest r_yz toward 0 for which the Gram matrix is exactly positive semidefinite."""
    bound = Fraction(r_yy) * Fraction(r_zz)
    limit = float(np.sqrt(r_yy) * np.sqrt(r_zz))
    r_yz = min(max(r_yz, -limit), limit)
    while Fraction(r_yz) ** 2 > bound:
        r_yz = float(np.nextafter(r_yz, 0.0))
    return r_yy, r_yz, r_zz


def _log_uniform(rng: Generator, low: float, high: float, size=None):
    return 10.0 ** rng.uniform(np.log10(low), np.log10(high), size)


def _gamma(rng: Generator) -> float:
    return _log_uniform(rng, 1e-12, 1e12)


def _gram(rng: Generator, size: float = 1.0) -> tuple[float, float, float]:
    """Gram matrix of two random remainders of one to three coordinates, one being collinear."""
    y, z = rng.normal(size=(2, rng.integers(1, 4))) * size
    return y @ y, y @ z, z @ z


def _dyadic(rng: Generator, size, nonzero: bool = True) -> np.ndarray:
    """Numbers of at most eight bits, whose products and halves are exact."""
    whole = rng.integers(1 if nonzero else 0, 129, size)
    return whole * rng.choice([-1.0, 1.0], size) / 32.0


def _spectrum(rng: Generator, k: int) -> np.ndarray:
    return _log_uniform(rng, 0.1, 10.0, k)


def generic(rng: Generator) -> Problem:
    k = rng.integers(1, 13)
    eta, zeta = rng.normal(size=(2, k))
    return _problem(_spectrum(rng, k), eta, zeta, _gram(rng), rng.integers(0, 2), _gamma(rng))


def balanced(rng: Generator) -> Problem:
    """All scales of order one, where neither end of the alpha range takes over."""
    return replace(generic(rng), gamma=float(_log_uniform(rng, 0.05, 20.0)))


def many_columns(rng: Generator) -> Problem:
    k = rng.choice([13, 20, 40], p=[0.6, 0.3, 0.1])
    eta, zeta = rng.normal(size=(2, k))
    return _problem(_spectrum(rng, k), eta, zeta, _gram(rng), rng.integers(0, 2), _gamma(rng))


def no_columns(rng: Generator) -> Problem:
    y, z = _dyadic(rng, 2, nonzero=False)
    gram = _gram(rng) if rng.random() < 0.6 else (y * y, y * z, z * z)
    return _problem((), (), (), gram, rng.integers(0, 2), _gamma(rng))


def hard_flat_null_space(rng: Generator) -> Problem:
    """nullity > 0 and r_zz = 0: an interval of alphas is optimal."""
    k = rng.integers(1, 13)
    sigma, eta, zeta = _spectrum(rng, k), rng.normal(size=k), rng.normal(size=k)
    gamma = _reaching(sigma, eta, zeta, rng.uniform(0.05, 0.95)) * _log_uniform(rng, 2.0, 1e8)
    return _problem(sigma, eta, zeta, (rng.exponential(), 0, 0), rng.integers(1, 4), gamma)


def _reaching(sigma, eta, zeta, c) -> float:
    """The gamma at which the exact fit of eta - c zeta just lies on the sphere."""
    return float(np.sum(((eta - c * zeta) / sigma) ** 2) / (c * (1 - c)))


def hard_null_space(rng: Generator) -> Problem:
    """nullity > 0 and r_zz > 0: the null space takes the norm that is left."""
    k = rng.integers(0, 13)
    sigma, eta, zeta = _spectrum(rng, k), rng.normal(size=k), rng.normal(size=k)
    c, r_zz = rng.integers(1, 32) / 32.0, abs(_dyadic(rng, 1)[0])
    gamma = max(_reaching(sigma, eta, zeta, c), 1e-3) * _log_uniform(rng, 1.1, 1e8)
    gram = (c * c * r_zz + rng.exponential(), c * r_zz, r_zz)
    return _problem(sigma, eta, zeta, gram, rng.integers(1, 4), gamma)


def hard_interpolating(rng: Generator) -> Problem:
    """Fewer rows than columns or as many: no remainder, so the loss can be 0."""
    k = rng.integers(1, 13)
    sigma, eta, zeta = _spectrum(rng, k), rng.normal(size=k), rng.normal(size=k)
    gamma = _reaching(sigma, eta, zeta, rng.uniform(0.05, 0.95)) * _log_uniform(rng, 2.0, 1e8)
    return _problem(sigma, eta, zeta, (0, 0, 0), rng.integers(0, 3), gamma)


def hard_untouched_lowest(rng: Generator) -> Problem:
    """eta and zeta vanish on the lowest eigenspace, whose eigenvectors take the norm left."""
    k, low = rng.integers(0, 9), rng.integers(1, 4)
    sigma = np.concatenate([np.full(low, rng.uniform(0.2, 0.9)), rng.uniform(1.0, 5.0, k)])
    eta = np.concatenate([np.zeros(low), rng.normal(size=k)])
    d, c = sigma[0] ** 2, rng.uniform(0.1, 0.9)
    zeta = rng.uniform(0.01, 0.2) * eta + 0.01 * np.concatenate([np.zeros(low), rng.normal(size=k)])
    gaps = np.where(eta == 0, 1.0, sigma**2 - d)
    x = sigma * (eta - c * zeta) / gaps
    gamma = max(float(x @ x) / (c * (1 - c)), 0.1) * _log_uniform(rng, 1.1, 1e3)
    curve, cross = (d * np.sum(zeta * other / gaps) for other in (zeta, eta))
    r_zz = gamma * d * rng.uniform(1.5, 5.0) + curve
    r_yz = c * (r_zz - gamma * d - curve) + gamma * d / 2 + cross
    gram = (1.01 * r_yz**2 / r_zz + rng.exponential(), r_yz, r_zz)
    return _problem(sigma, eta, zeta, gram, 0, gamma)


def hard_half(rng: Generator) -> Problem:
    """y = z / 2 plus something orthogonal to z: alphas a and 1 / a cost the same."""
    k = rng.integers(1, 13)
    zeta, r_zz = _dyadic(rng, k), abs(_dyadic(rng, 1)[0])
    gram = (r_zz / 4 + rng.exponential(), r_zz / 2, r_zz)
    return _problem(_spectrum(rng, k), zeta / 2, zeta, gram, 0, _gamma(rng))


def hard_double_pole(rng: Generator) -> Problem:
    """zeta = 0 and r_zz = gamma d_min: the lowest eigenvector and c are free together."""
    k = rng.integers(1, 9)
    sigma = np.sort(np.abs(_dyadic(rng, k)))
    eta = np.where(sigma == sigma[0], 0.0, rng.normal(size=k) * 1e-3)
    gamma = 2.0 ** rng.integers(0, 20)
    r_zz = gamma * sigma[0] ** 2
    gram = (r_zz / 4 + rng.exponential(), r_zz / 2, r_zz)
    return _problem(sigma, eta, np.zeros(k), gram, 0, gamma)


def hard_any_units(rng: Generator) -> Problem:
    """A hard game in other units, powers of two so that it stays hard."""
    game = _EXACT[rng.integers(len(_EXACT))](rng)
    columns, target = 2.0 ** rng.integers(-26, 27, 2)
    grams = (v * target**2 for v in (game.r_yy, game.r_yz, game.r_zz))
    eta, zeta = np.asarray(game.eta) * target, np.asarray(game.zeta) * target
    gamma = game.gamma * (target / columns) ** 2
    return _problem(np.asarray(game.sigma) * columns, eta, zeta, grams, game.nullity, gamma)


def constant_z(rng: Generator) -> Problem:
    """zeta = 0, as for a constant z and centred columns."""
    k = rng.integers(1, 13)
    eta = rng.normal(size=k) * (rng.random(k) < 0.7)
    zeros = np.zeros(k)
    return _problem(_spectrum(rng, k), eta, zeros, _gram(rng), rng.integers(0, 2), _gamma(rng))


def no_projection(rng: Generator) -> Problem:
    """eta = zeta = 0: x lies in the lowest eigenspace or vanishes."""
    k = rng.integers(1, 7)
    zeros = np.zeros(k)
    gamma = _log_uniform(rng, 1e-4, 1e4)
    return _problem(_spectrum(rng, k), zeros, zeros, _gram(rng), rng.integers(0, 2), gamma)


def edge_of_hard(rng: Generator) -> Problem:
    """gamma within 1e-16 to 1e-3 of the value at which the hard case begins."""
    k = rng.integers(1, 9)
    sigma, eta, zeta = _spectrum(rng, k), rng.normal(size=k), rng.normal(size=k)
    if rng.random() < 0.5:
        c = rng.integers(1, 32) / 32.0
        gram, nullity = (c * c + 1, c, 1), 1
    else:
        a, b, m = (np.sum(v / sigma**2) for v in (eta**2, zeta**2, eta * zeta))
        c = (a - np.sqrt(a * (a + b - 2 * m))) / (2 * m - b)
        gram, nullity = (1, 0, 0), rng.integers(0, 2)
    gamma = _reaching(sigma, eta, zeta, c) * (1 + _disturbance(rng))
    # Where one column fits exactly it begins at zero, up to rounding.
    return _problem(sigma, eta, zeta, gram, nullity, max(gamma, np.finfo(float).tiny))


def _disturbance(rng: Generator) -> float:
    return float(rng.choice([-1.0, 1.0]) * _log_uniform(rng, 1e-16, 1e-4))


def _near(family: Callable[[Generator], Problem]) -> Callable[[Generator], Problem]:
    """The family with its zeros and its numbers moved by one relative size."""

    def near(rng: Generator) -> Problem:
        exact, size = family(rng), abs(_disturbance(rng))
        k = len(exact.sigma)
        moves = size * rng.normal(size=(3, k)) * (rng.random((3, k)) < 0.7)
        sigma = np.asarray(exact.sigma) * (1 + moves[0])
        eta, zeta = np.asarray(exact.eta) + moves[1], np.asarray(exact.zeta) + moves[2]
        r_zz = exact.r_zz * (1 + size * rng.normal()) + rng.choice([0.0, size, size**2])
        r_yz = exact.r_yz * (1 + size * rng.normal())
        if not exact.r_zz:
            r_yz = rng.uniform(-1, 1) * np.sqrt(exact.r_yy * r_zz)
        return _problem(sigma, eta, zeta, (exact.r_yy, r_yz, r_zz), exact.nullity, exact.gamma)

    return near


def rank_deficient(rng: Generator) -> Problem:
    """A game reduced in float64 from a matrix of low rank, as the library will meet it."""
    m, n = rng.integers(2, 15, 2)
    rank = rng.integers(1, min(m, n) + 1)
    u, s, _ = np.linalg.svd(rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)))
    basis, y, z = u[:, :rank], rng.normal(size=m), rng.normal(size=m)
    eta, zeta = basis.T @ y, basis.T @ z
    if rank == m:
        gram = (0, 0, 0)
    else:
        ry, rz = y - basis @ eta, z - basis @ zeta
        gram = (ry @ ry, ry @ rz, rz @ rz)
    return _problem(s[:rank], eta, zeta, gram, n - rank, _gamma(rng))


def repeated_sigma(rng: Generator) -> Problem:
    k = rng.integers(2, 13)
    sigma = rng.choice(_spectrum(rng, rng.integers(1, 4)), k)
    eta, zeta = rng.normal(size=(2, k)) * (rng.random((2, k)) < 0.6)
    return _problem(sigma, eta, zeta, _gram(rng), rng.integers(0, 2), _gamma(rng))


def tiny_sigma(rng: Generator) -> Problem:
    k = rng.integers(1, 13)
    sigma = _log_uniform(rng, *[(1e-9, 1.0), (1e-6, 1e3)][rng.integers(2)], k)
    eta, zeta = rng.normal(size=(2, k))
    gram = (0, 0, 0) if rng.random() < 0.2 else _gram(rng)
    return _problem(sigma, eta, zeta, gram, rng.integers(0, 2), _gamma(rng))


def tiny_z(rng: Generator) -> Problem:
    k, size = rng.integers(1, 13), _log_uniform(rng, 1e-12, 1e-3)
    eta, zeta = rng.normal(size=k), rng.normal(size=k) * size
    r_yy, r_yz, r_zz = _gram(rng)
    gram = (r_yy, r_yz * size, r_zz * size**2)
    return _problem(_spectrum(rng, k), eta, zeta, gram, rng.integers(0, 2), _gamma(rng))


def z_near_y(rng: Generator) -> Problem:
    k, size = rng.integers(1, 13), _log_uniform(rng, 1e-14, 1e-3)
    eta, y = rng.normal(size=k), rng.normal(size=3)
    zeta, z = eta + size * rng.normal(size=k), y + size * rng.normal(size=3)
    gram = (y @ y, y @ z, z @ z) if rng.random() < 0.8 else (0, 0, 0)
    return _problem(_spectrum(rng, k), eta, zeta, gram, rng.integers(0, 2), _gamma(rng))


def z_equals_y(rng: Generator) -> Problem:
    k, rest = rng.integers(1, 13), rng.choice([0.0, rng.exponential()])
    eta = rng.normal(size=k)
    gram = (rest, rest, rest)
    return _problem(_spectrum(rng, k), eta, eta, gram, rng.integers(0, 2), _gamma(rng))


def same_projection(rng: Generator) -> Problem:
    """eta = zeta with other remainders: attained or not according to the multiplier at c = 1."""
    k = rng.integers(1, 13)
    eta = rng.normal(size=k)
    return _problem(_spectrum(rng, k), eta, eta, _gram(rng), rng.integers(0, 2), _gamma(rng))


def zero_y(rng: Generator) -> Problem:
    """y = 0, or only its projection."""
    k = rng.integers(1, 13)
    r_yy, r_yz, r_zz = _gram(rng)
    gram = (r_yy, r_yz, r_zz) if rng.random() < 0.5 else (0, 0, r_zz)
    zeros, zeta = np.zeros(k), rng.normal(size=k)
    return _problem(_spectrum(rng, k), zeros, zeta, gram, rng.integers(0, 2), _gamma(rng))


def zero_z(rng: Generator) -> Problem:
    k = rng.integers(1, 13)
    gram, eta = (rng.exponential(), 0, 0), rng.normal(size=k)
    return _problem(_spectrum(rng, k), eta, np.zeros(k), gram, rng.integers(0, 2), _gamma(rng))


def negative_multiplier(rng: Generator) -> Problem:
    """More norm than the fit wants, and no null space to put it in."""
    k = rng.integers(1, 13)
    zeta, z = rng.normal(size=k), rng.normal(size=4) * 3.0
    c = rng.uniform(0.1, 0.9)
    eta, y = c * zeta + 0.1 * rng.normal(size=k), c * z + rng.normal(size=4) * 0.1
    gamma = _log_uniform(rng, 1.0, 1e12)
    gram = (y @ y, y @ z, z @ z)
    return _problem(rng.uniform(0.5, 3.0, k), eta, zeta, gram, 0, gamma)


def wide_scales(rng: Generator) -> Problem:
    k = rng.integers(1, 13)
    y, z, columns = _log_uniform(rng, 1e-8, 1e8, 3)
    r_yy, r_yz, r_zz = _gram(rng)
    eta, zeta = rng.normal(size=k) * y, rng.normal(size=k) * z
    gram = (r_yy * y * y, r_yz * y * z, r_zz * z * z)
    sigma = _spectrum(rng, k) * columns
    return _problem(sigma, eta, zeta, gram, rng.integers(0, 2), _gamma(rng))


_EXACT = (
    hard_flat_null_space,
    hard_null_space,
    hard_interpolating,
    hard_untouched_lowest,
    hard_half,
    hard_double_pole,
)
_OTHERS = (
    generic,
    balanced,
    many_columns,
    no_columns,
    constant_z,
    no_projection,
    edge_of_hard,
    rank_deficient,
    repeated_sigma,
    tiny_sigma,
    tiny_z,
    z_near_y,
    z_equals_y,
    same_projection,
    zero_y,
    zero_z,
    negative_multiplier,
    wide_scales,
    hard_any_units,
)
FAMILIES: dict[str, Callable[[Generator], Problem]] = {
    **{family.__name__: family for family in (*_OTHERS, *_EXACT)},
    **{family.__name__.replace("hard", "near"): _near(family) for family in _EXACT},
}
