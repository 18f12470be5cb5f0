"""On a GPU: the catalogue against NumPy, and times of large games, by the array libraries there.

It needs NumPy, SciPy, scikit-learn, numba, an array library and array-api-compat; where nothing can
be installed, pure Python packages may lie in a folder on PYTHONPATH:

    SCIPY_ARRAY_API=1 PYTHONPATH=src:FOLDER python benchmarks/gpu.py --out benchmarks/results

Random games need gmpy2 besides, which computes losses in 400 bits.

Times are medians of 20 after a warm-up of 0.3 s; a time counts only if its answer is certified.
Short ones depend on the host, whose speed changes from minute to minute where others use it too:
how long a loop of 20,000 steps in Python takes, before and after a job, stands beside its times.
"""

from __future__ import annotations

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
# JAX would take most of the device's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls import Population, explain_solver, solve, solve_path
from spgls.datasets import catalogue, load_problem
from spgls.matrix import as_matrix
from spgls.solvers import Krylov

# The campaign is part of the tests, which are no installed package: the import below needs this.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.campaign.places import put

PACKAGES = ("numpy", "scipy", "sklearn", "torch", "cupy", "jax", "spgls")
#: Turns of a measurement, of those that take longer than so many seconds, and seconds before them.
TURNS, FEW, LONG, WARM = 20, 3, 0.5, 0.3
#: Differences of objectives from those of NumPy, in units of the labels, that still agree.
SAME = 1e-9
STRENGTHS = np.geomspace(1e-3, 1e3, 100)
#: Seed of the random games, and how many a process plays at a time.
SEED, SOME = 701, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--only", default="", help="measurements whose names hold one of these, a,b"
    )
    parser.add_argument("--games", type=int, default=4000, help="random games a library plays")
    parser.add_argument("--small", action="store_true", help="smaller games, to see that it runs")
    arguments = parser.parse_args()
    wanted = [part for part in arguments.only.split(",") if part]
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("no NVIDIA GPU, or no PyTorch that sees it.")
    record: dict[str, Any] = {"environment": environment(), "measured": [], "catalogue": []}
    record["campaign"] = []
    scale = 10 if arguments.small else 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs: dict[str, Callable[[], Any]] = {
        "bandwidth": bandwidth,
        **{f"catalogue {name}": _catalogue_job(name) for name in ("torch", "cupy", "jax")},
        **{f"campaign {name}": _campaign_job(name, arguments.games) for name in ("torch", "cupy")},
        "products": lambda: products(200_000_000 // scale),
        "dense float64": lambda: dense(20_000 // scale, 10_000 // scale, "float64", 1e-9),
        "dense float32": lambda: dense(20_000 // scale, 10_000 // scale, "float32", 1e-5),
        "path": lambda: path(20_000 // scale, 10_000 // scale),
        "sparse": lambda: sparse(90_000 // scale, 30_000 // scale, 0.01),
        "tall": lambda: tall(10_000_000 // scale, 200),
        "spectral": lambda: decomposed(200_000 // scale, 2_000 // scale),
        "small": lambda: small(2_000, 100),
        "largest": lambda: dense(1_200_000 // scale, 10_000 // scale, "float64", 1e-9, peers=False),
        "peers": lambda: peers(20_000 // scale, 10_000 // scale),
    }
    for name, job in jobs.items():
        if wanted and not any(part in name for part in wanted):
            continue
        start, pace = time.perf_counter(), host_loop()
        try:
            found = job()
        except Exception as error:
            traceback.print_exc()
            found = [{"name": name, "error": f"{type(error).__name__}: {error}"}]
        kind = name.split()[0] if name.split()[0] in record else "measured"
        pace = pace, host_loop()
        for row in found:
            if kind == "measured":
                row["host_loop"] = " to ".join(f"{1e3 * one:.2f}" for one in sorted(pace))
            record[kind].append(row)
            print(row, flush=True)
        torch.cuda.empty_cache()
        print(f"# {name}: {time.perf_counter() - start:.1f} s", flush=True)
        # After each, so that a run that is stopped leaves what it has measured.
        (arguments.out / "gpu.json").write_text(json.dumps(record, indent=1) + "\n")
        (arguments.out / "gpu.md").write_text(report(record))


def environment() -> dict[str, Any]:
    """Device, driver, versions."""
    asked = "--query-gpu=name,driver_version,memory.total"
    told = subprocess.run(
        ["nvidia-smi", asked, "--format=csv,noheader"], capture_output=True, text=True, check=False
    ).stdout.strip()
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.import_module(name).__version__
        except Exception as error:
            versions[name] = f"not there ({type(error).__name__})"
    return {
        "device": told,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Median of some turns, each until the device is done, and the last result.

    Before them come two turns, and more until the host's clock has settled.
    """
    import torch

    def turn() -> tuple[float, Any]:
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = job()
        torch.cuda.synchronize()
        return time.perf_counter() - start, result

    begun, spent = time.perf_counter(), []
    while len(spent) < 2 or time.perf_counter() - begun < WARM:
        spent.append(turn()[0])
        if spent[-1] > LONG:
            break
    seconds = []
    for _ in range(FEW if spent[-1] > LONG else TURNS):
        # One result at a time, as in a loop of a user's: more would need fresh memory each.
        result = None
        took, result = turn()
        seconds.append(took)
    return float(np.median(seconds)), result


def host_loop() -> float:
    """Seconds that a loop of 20,000 steps takes in Python, the median of 21."""
    spent = []
    for _ in range(21):
        start, total = time.perf_counter(), 0
        for i in range(20_000):
            total += i * i
        spent.append(time.perf_counter() - start)
    return float(np.median(spent))


def bandwidth() -> list[dict[str, Any]]:
    """Bytes that the device reads in a second, by PyTorch's sum."""
    import torch

    X = torch.empty(2**31, dtype=torch.float64, device="cuda").normal_()
    seconds, _ = timed(lambda: X.sum())
    return [{"name": "read", "terabytes_per_second": 8e-12 * X.numel() / seconds}]


def _catalogue_job(library: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: compare(library)


def compare(library: str) -> list[dict[str, Any]]:
    """Every game of the catalogue, on the device and by NumPy."""
    worst, different, games = 0.0, [], 0
    for name in catalogue():
        problem = load_problem(name)
        X = problem.X
        if sp.issparse(X) and library == "jax":
            continue
        there = put(library, X if sp.issparse(X) else np.asarray(X))
        told = dict(problem.options)
        who = [problem.gamma, Population.mixed(problem.gamma, honest=0.5)]
        jobs = [(solve, one, told | {"solver": s}) for one in who for s in ("auto", "krylov")]
        jobs.append((solve_path, [problem.gamma, 2 * problem.gamma], told))
        for function, gamma, options in jobs:
            host = function(problem.X, problem.y, problem.z, gamma, **options)
            device = function(there, problem.y, problem.z, gamma, **options)
            pairs = zip(host, device, strict=True) if function is solve_path else [(host, device)]
            for a, b in pairs:
                games += 1
                gap = abs(a.objective - b.objective) / max(float(np.sum(problem.y**2)), 1e-300)
                worst = max(worst, gap)
                if a.status is not b.status or gap > SAME:
                    words = f"{name}: {a.status.value} and {b.status.value}, {gap:.2g}"
                    different.append(f"{words}, {options.get('solver', 'path')}")
    return [{"name": library, "games": games, "worst": worst, "different": different}]


def _campaign_job(library: str, games: int) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [campaign(library, games)]


def campaign(library: str, games: int) -> dict[str, Any]:
    """Random games with X on the device: every bound beside losses in 400 bits."""
    parts = [(library, SEED, range(at, min(at + SOME, games))) for at in range(0, games, SOME)]
    kinds, runs, failing = Counter(), Counter(), []
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        for found in pool.imap_unordered(_some_games, parts):
            kinds.update(found["kinds"])
            runs.update(found["runs"])
            failing += found["failing"]
    return {
        "name": library,
        "seed": SEED,
        "games": games,
        "runs": dict(runs),
        "kinds": dict(kinds),
        "failing": failing,
    }


def _some_games(part: tuple[str, int, range]) -> dict[str, Any]:
    from tests.campaign.elsewhere import count_there

    return count_there(*part)


def labelled(m: int, n: int, kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """The paper's dense data, made on the device: columns brought to the unit interval."""
    import torch

    torch.manual_seed(0)
    X = torch.empty((m, n), dtype=getattr(torch, kind), device="cuda")
    step = max(1, 2**28 // n)
    weights = 100.0 * torch.rand(10, dtype=torch.float64, device="cuda")
    y = torch.empty(m, dtype=torch.float64, device="cuda")
    for at in range(0, m, step):
        block = X[at : at + step].normal_()
        y[at : at + step] = block[:, :10].double() @ weights
    y += 0.1 * torch.randn_like(y)
    low = torch.amin(X, dim=0)
    width = torch.amax(X, dim=0) - low
    for at in range(0, m, step):
        X[at : at + step].sub_(low).div_(width)
    labels = y.cpu().numpy()
    return X, labels, np.maximum(labels, np.quantile(labels, 0.25))


def row(name: str, seconds: float, solution: Any, **more: Any) -> dict[str, Any]:
    """One line of the record."""
    proof = solution.certificate
    return {
        "name": name,
        "milliseconds": 1e3 * seconds,
        "solver": solution.solver,
        "passes": solution.stats.passes,
        "relative_gap": proof.relative_gap,
        "kind": proof.kind,
        "certified": solution.status.ok and proof.kind == "proved",
        **more,
    }


def dense(m: int, n: int, kind: str, tol: float, peers: bool = True) -> list[dict[str, Any]]:
    """A game of the paper."""
    import torch

    X, y, z = labelled(m, n, kind)
    nbytes, rows = X.numel() * X.element_size(), []
    name = f"dense {m} x {n} {kind}"
    seconds, one = timed(lambda: solve(X, y, z, 0.1, tol=tol))
    rate = 1e-12 * nbytes * one.stats.passes / seconds
    rows.append(row(name, seconds, one, terabytes_per_second=rate))
    there = torch.asarray(y).cuda(), torch.asarray(z).cuda()
    seconds, one = timed(lambda: solve(X, *there, 0.1, tol=tol))
    rate = 1e-12 * nbytes * one.stats.passes / seconds
    rows.append(row(f"{name}, labels there too", seconds, one, terabytes_per_second=rate))
    for width in (1, 2):
        how = Krylov(width=width)
        seconds, one = timed(lambda how=how: solve(X, y, z, 0.1, tol=tol, solver=how))
        rate = 1e-12 * nbytes * one.stats.passes / seconds
        rows.append(row(f"{name}, width {width}", seconds, one, terabytes_per_second=rate))
    if not peers:
        seconds, many = timed(lambda: solve_path(X, y, z, STRENGTHS))
        worst = max(many, key=lambda solution: solution.certificate.relative_gap)
        ratio = 1e3 * seconds / rows[0]["milliseconds"]
        rows.append(row(f"{name}, path of 100", seconds, worst, ratio=ratio))
        seconds, _ = timed(lambda: X.sum())
        rows.append({"name": f"{name}, read", "terabytes_per_second": 1e-12 * nbytes / seconds})
        return rows
    seconds, one = timed(lambda: solve(X, y, z, 0.1, tol=tol, fit_intercept=True))
    rows.append(row(f"{name}, intercept", seconds, one))
    ones = torch.ones(n, dtype=X.dtype, device="cuda")
    seconds, _ = timed(lambda: X.T @ (X @ ones))
    rows.append({"name": f"{name}, two products of PyTorch", "milliseconds": 1e3 * seconds})
    print(repr(explain_solver(X)))
    return rows


def products(entries: int) -> list[dict[str, Any]]:
    """The fused product beside two of the library's, each with its vectors from host to host."""
    import torch

    rows = []
    for kind in ("float64", "float32"):
        for n in (2048, 4096, 8192, 10_000, 12_000, 14_000, 20_000):
            X = torch.rand((entries // n, n), dtype=getattr(torch, kind), device="cuda")
            fused, plain = as_matrix(X), as_matrix(X)
            # Without compiled products.
            plain.__dict__["_products"] = None
            for width in (1, 2):
                v = np.random.default_rng(0).normal(size=(n, width)[:width])
                if fused._products is None or fused._products._shape(width) is None:
                    continue
                ours, a = timed(lambda v=v, A=fused: A.gram(v))
                theirs, b = timed(lambda v=v, A=plain: A.gram(v))
                rows.append(
                    {
                        "name": f"product, rows of {n} {kind}, width {width}",
                        "milliseconds": 1e3 * ours,
                        "library_milliseconds": 1e3 * theirs,
                        "ratio": theirs / ours,
                        "difference": float(np.abs(a - b).max() / np.abs(b).max()),
                    }
                )
            del X, fused, plain
    return rows


def path(m: int, n: int) -> list[dict[str, Any]]:
    """A hundred strengths, beside one of them."""
    X, y, z = labelled(m, n, "float64")
    alone, _ = timed(lambda: solve(X, y, z, 0.1))
    seconds, many = timed(lambda: solve_path(X, y, z, STRENGTHS))
    worst = max(many, key=lambda solution: solution.certificate.relative_gap)
    return [row(f"path of 100, {m} x {n}", seconds, worst, ratio=seconds / alone)]


def sparse(m: int, n: int, density: float) -> list[dict[str, Any]]:
    """Compressed rows of PyTorch."""
    import torch

    torch.manual_seed(0)
    each = int(n * density)
    columns = torch.sort(torch.randint(0, n, (m, each), device="cuda"), dim=1).values.reshape(-1)
    starts = torch.arange(0, m * each + 1, each, device="cuda")
    entries = torch.rand(m * each, dtype=torch.float64, device="cuda")
    # A column that comes twice in a row counts twice.
    X = torch.sparse_csr_tensor(starts, columns, entries, size=(m, n), check_invariants=False)
    y = (X @ torch.randn(n, 1, dtype=torch.float64, device="cuda"))[:, 0]
    labels = (y + 0.5 * torch.rand_like(y)).cpu().numpy()
    z = np.maximum(labels, np.quantile(labels, 0.25))
    seconds, one = timed(lambda: solve(X, labels, z, 0.1))
    return [row(f"sparse {m} x {n}, density {density:g}", seconds, one)]


def tall(m: int, n: int) -> list[dict[str, Any]]:
    """The default estimator, beside one Gram product in double precision."""
    import sklearn
    import torch

    from spgls import StackelbergRegressor

    X, labels, goals = labelled(m, n, "float32")
    y, z = (torch.asarray(t).cuda() for t in (labels, goals))

    def product() -> Any:
        total = torch.zeros((n, n), dtype=torch.float64, device="cuda")
        for at in range(0, m, 2**17):
            block = X[at : at + 2**17].double()
            total += block.T @ block
        return total

    gram, _ = timed(product)
    single, _ = timed(lambda: X.T @ X)
    with sklearn.config_context(array_api_dispatch=True):
        seconds, model = timed(lambda: StackelbergRegressor().fit(X, y, z=z))
    proof = model.certificate_
    return [
        {
            "name": f"tall {m} x {n} float32, default estimator",
            "milliseconds": 1e3 * seconds,
            "gram_milliseconds": 1e3 * gram,
            "single_gram_milliseconds": 1e3 * single,
            "ratio": seconds / gram,
            "solver": model.solver_,
            "relative_gap": proof.relative_gap,
            "certified": model.status_.ok and proof.kind == "proved",
        }
    ]


def decomposed(m: int, n: int) -> list[dict[str, Any]]:
    """By decomposition, and where the eigenvectors are found sooner."""
    import torch

    X, y, z = labelled(m, n, "float64")
    seconds, one = timed(lambda: solve(X, y, z, 0.1, solver="spectral"))
    rows = [row(f"spectral {m} x {n}", seconds, one)]
    G = X[: 4 * n].T @ X[: 4 * n]
    there, _ = timed(lambda: torch.linalg.eigh(G))
    H = G.cpu().numpy()
    here, _ = timed(lambda: np.linalg.eigh(H))
    rows.append({"name": f"eigh {n}", "milliseconds": 1e3 * there, "host_milliseconds": 1e3 * here})
    return rows


def small(m: int, n: int) -> list[dict[str, Any]]:
    """What does not pay: a small game, on the device and on the host."""
    X, y, z = labelled(m, n, "float64")
    host = X.cpu().numpy()
    seconds, one = timed(lambda: solve(X, y, z, 0.1))
    here, _ = timed(lambda: solve(host, y, z, 0.1))
    return [row(f"small {m} x {n}", seconds, one, host_milliseconds=1e3 * here)]


def peers(m: int, n: int) -> list[dict[str, Any]]:
    """What a user would pick on the same GPU, which solve an easier problem."""
    import sklearn
    import torch
    from sklearn.linear_model import Ridge

    X, labels, z = labelled(m, n, "float64")
    y = torch.asarray(labels).cuda()
    ours, _ = timed(lambda: solve(X, labels, z, 0.1))
    rows = []

    def by_ridge() -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            return Ridge(alpha=1.0, solver="svd", fit_intercept=False).fit(X, y)

    jobs = {
        "torch.linalg.lstsq": lambda: torch.linalg.lstsq(X, y[:, None]),
        'Ridge(solver="svd")': by_ridge,
    }
    for name, job in jobs.items():
        try:
            seconds, _ = timed(job)
        except Exception as error:
            rows.append({"name": name, "error": f"{type(error).__name__}: {error}"[:300]})
            continue
        rows.append({"name": name, "milliseconds": 1e3 * seconds, "ratio": seconds / ours})
    return rows


def report(record: dict[str, Any]) -> str:
    """The record as a page."""
    told = record["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    lines = [
        "# On a GPU",
        "",
        f"{told['device']}; Python {told['python']}, {told['cores']} cores; {versions}; "
        f"{told['date']}.",
        "",
        "| what | ms | solver | reads | certified gap | more |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    shown = ("name", "milliseconds", "solver", "passes", "relative_gap", "kind", "certified")
    for one in record["measured"]:
        rest = {k: v for k, v in one.items() if k not in shown}
        more = ", ".join(
            f"{k.replace('_', ' ')} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
            for k, v in rest.items()
        )
        gap = f"{one['relative_gap']:.1e}" if "relative_gap" in one else ""
        if gap and not one["certified"]:
            gap += " (not proved)"
        time_ = f"{one['milliseconds']:.4g}" if "milliseconds" in one else ""
        cells = one["name"], time_, one.get("solver", ""), f"{one.get('passes', ''):}", gap, more
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "## The catalogue, beside NumPy", ""]
    for one in record["catalogue"]:
        if "error" in one:
            lines.append(f"- {one['name']}: {one['error']}")
            continue
        lines.append(
            f"- {one['name']}: {one['games']} games, objectives differ by {one['worst']:.1e} of "
            f"the labels at most; {len(one['different'])} differ in status or by more than 1e-9."
        )
        lines += [f"  - {case}" for case in one["different"]]
    lines += ["", "## Random games, beside losses in 400 bits", ""]
    for one in record["campaign"]:
        if "error" in one:
            lines.append(f"- {one['name']}: {one['error']}")
            continue
        runs = sum(one["runs"].values())
        proved = sum(n for status, n in one["runs"].items() if status.endswith("proved"))
        found = ", ".join(f"{kind} {n}" for kind, n in one["kinds"].items()) or "nothing"
        lines.append(
            f"- {one['name']}: {one['games']:,} games of seed {one['seed']}, {runs:,} runs, "
            f"{100 * proved / runs:.1f}% proved; games that show a failure: {found}."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
