"""Answers of the catalogue's problems: how they are derived and stored."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from mpmath import mp, mpf

import spgls.datasets
from spgls.datasets import Answer, Problem
from spgls.datasets._catalogue import stored_answers
from spgls.reduction import reduce_spectral
from spgls.reduction.data import GameData
from spgls.solvers import Spectral, Status

from .exact_game import DIGITS, Instance, Truth

FILE = Path(spgls.datasets.__file__).parent / "_answers.json"
#: The exact oracle takes half a minute at this order and grows with its cube.
EXACT_ORDER = 64
CERTIFIED_GAP = 1e-12
KEPT_DIGITS = 30


def fingerprint(problem: Problem) -> str:
    """SHA-256 of everything that a solver is given: numbers, types and layout."""
    digest = hashlib.sha256()
    for part in (problem.X, problem.y, problem.z, problem.gamma, *problem.options.values()):
        if sp.issparse(part):
            digest.update(f"{part.format} {part.shape}".encode())
            arrays = (part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64))
        else:
            arrays = (np.asarray(part, dtype=float) if part is None else np.asarray(part),)
        for array in arrays:
            layout = "F" if array.ndim == 2 and not array.flags.c_contiguous else "C"
            digest.update(f"{array.dtype.str} {array.shape} {layout}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def instance_of(problem: Problem) -> Instance:
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    return Instance(X, problem.y, problem.z, problem.gamma, **problem.options)


def derive(problem: Problem) -> Answer:
    return exact(problem) if min(problem.X.shape) <= EXACT_ORDER else certified(problem)


def exact(problem: Problem) -> Answer:
    instance = instance_of(problem)
    truth = instance.truth
    with mp.workdps(DIGITS):
        found, value = truth.answer, truth.infimum
        if value <= mpf(10) ** -60 * truth.yy:
            value = mpf(0)
        numbers = {
            "value": _text(value),
            "curvature": _text(_curvature(truth)),
            "label_size": _text(truth.yy),
            "label_spread": _text(truth.pyy),
        }
        if found is None:
            alpha, status, sign = "0.0", "unique", None
        else:
            status, sign = found.status, int(mp.sign(found.nu))
            alpha = _text(found.alpha) if mp.isfinite(found.alpha) else None
    return _answer(problem, numbers, alpha, status, sign, "exact")


def _curvature(truth: Truth) -> mpf:
    if truth.answer is None:
        return mpf(0)
    nu, game = truth.answer.nu, truth.game
    parts = (z * z / (s * s + nu) for s, z in zip(game.sigma, game.zeta, strict=True) if z and nu)
    h = game.r_zz + nu * (game.gamma + mp.fsum(parts))
    return h if h > mpf(10) ** -60 * truth.zz else mpf(0)


def certified(problem: Problem) -> Answer:
    arguments = (problem.X, problem.y, problem.z)
    solution = spgls.solve(
        *arguments, problem.gamma, **problem.options, solver=Spectral(engine="qr"), tol=1e-12
    )
    proof = solution.certificate
    if proof.kind != "proved" or not proof.relative_gap <= CERTIFIED_GAP:
        raise ValueError(f"{problem.name}: no certified answer, {solution!r}")
    game = reduce_spectral(GameData.from_user(*arguments, **problem.options), "qr").game
    nu = 4 * solution.multiplier / problem.gamma
    weight = problem.options["sample_weight"]
    y2 = np.asarray(problem.y, dtype=float) ** 2
    numbers = {
        "value": repr(solution.objective),
        "curvature": repr(
            float(game.r_zz + nu * (problem.gamma + np.sum(game.zeta**2 / (game.d + nu))))
        ),
        "label_size": repr(float(np.sum(y2 if weight is None else weight * y2))),
        "label_spread": repr(float(game.yy)),
    }
    unique = solution.status is Status.OPTIMAL
    status = "unique" if unique else "several"
    sign = int(np.sign(nu)) if unique else 0
    return _answer(problem, numbers, repr(solution.alpha), status, sign, "certified")


def _answer(problem, numbers, alpha, status, sign, how) -> Answer:
    return Answer(
        **numbers,
        alpha=alpha if status == "unique" else None,
        smallest_alpha=alpha,
        status=status,
        sign=sign,
        how=how,
        sha256=fingerprint(problem),
    )


def _text(value: mpf) -> str:
    return mp.nstr(value, KEPT_DIGITS)


def write(answers: dict[str, Answer]) -> None:
    entries = {name: asdict(answer) for name, answer in answers.items()}
    FILE.write_text(json.dumps(entries, indent=1) + "\n")
    stored_answers.cache_clear()
