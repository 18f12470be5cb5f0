"""The experiments: every table and figure of the paper, and what it does not show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reproduction.experiment import SCALES, Experiment, Grid
from reproduction.measure import CURVES

__all__ = ["EXPERIMENTS", "find_experiments"]

MATRIX_FREE = ("rtr-newton", "ltrsr", "krylov")
LARGE = ("socp", *MATRIX_FREE)
SMALL = ("sdp", *LARGE, "spectral")
ALL = ("bisection", "sdp", "socp", "gltr", "ltrsr", "rtr-newton", "spectral", "krylov")
DENSITIES = (0.01, 0.001, 0.0001)


def _even(first: int, last: int, count: int) -> tuple[int, ...]:
    return tuple(round(first + (last - first) * k / (count - 1)) for k in range(count))


HOURS = 3600.0
_REAL = (
    "LTRSR is the fastest of the four methods; objectives agree to 3.37e-5 and errors on test rows "
    "to 5.27e-4."
)


def _real(source: str, title: str, place: str, claim: str, **grids: Grid) -> Experiment:
    return Experiment(
        source, f"{title}: time against rows", claim, place, "real", SMALL, grids, sources=(source,)
    )


def _dense(gamma: float, place: str, claim: str) -> Experiment:
    return Experiment(
        f"dense-{gamma:g}",
        f"Dense synthetic games, gamma {gamma:g}: time against features",
        claim,
        place,
        "synthetic",
        LARGE,
        {
            "quick": Grid((200, 400, 800), 2, seconds=60.0),
            "machine": Grid(
                (1000, 2000, 3000, 4000, 6000, 8000, 10000),
                3,
                once=dict.fromkeys(MATRIX_FREE, 4000) | {"socp": 2000},
                up_to={"socp": 4000},
            ),
            "paper": Grid((1000, 2000, 4000, 6000, 8000, 10000), 10, seconds=4 * HOURS),
        },
        gamma,
        densities=(None,),
        ratios=(2.0, 1.0, 0.5),
    )


def _sparse(ratio: float, up_to: int) -> Experiment:
    return Experiment(
        f"sparse-{ratio:g}n",
        f"Sparse synthetic games, m = {ratio:g}n: time against features".replace(" 1n", " n"),
        "LTRSR and RTRNewton gain from sparsity and SOCP does not, so that the ratio grows with "
        "size and sparsity, to 26,786 at n = 30,000, m = n/2 and density 0.0001.",
        "Table tab:syn-sparse" if ratio < 1 else "Table tab:app-syn-sparse",
        "synthetic",
        LARGE,
        {
            "quick": Grid((500, 1000, 2000), 2, up_to={"socp": 1000}, seconds=60.0),
            "machine": Grid(
                (5000, 7500, 10000, 15000, 20000, 25000, 30000),
                3,
                once=dict.fromkeys(MATRIX_FREE, 10000) | {"socp": 2500},
                up_to={"socp": up_to},
                seconds=180.0,
            ),
            "paper": Grid(
                (10000, 15000, 20000, 25000, 30000), 10, once={"socp": 10000}, seconds=4 * HOURS
            ),
        },
        densities=DENSITIES,
        ratios=(ratio,),
    )


_LIST = (
    _real(
        "wine",
        "Red wine",
        "Figure fig:winetime, Tables tab:SPGLS-real-reltol and tab:SPGLS-real-MSE",
        _REAL + " RTRNewton is even slower than the SDP here.",
        quick=Grid((150, 1500), 2, seconds=60.0),
        machine=Grid(_even(150, 1500, 6), 5),
        paper=Grid(_even(150, 1500, 16), 10, seconds=HOURS),
    ),
    _real(
        "insurance",
        "Insurance",
        "Figure fig:bloginsurtime, Tables tab:SPGLS-real-reltol and tab:SPGLS-real-MSE",
        _REAL,
        quick=Grid((100, 1300), 2, seconds=60.0),
        machine=Grid(_even(100, 1300, 7), 5),
        paper=Grid(_even(100, 1300, 25), 10, seconds=HOURS),
    ),
    _real(
        "building",
        "Residential building",
        "Figure fig:buildtime, Tables tab:SPGLS-real-reltol and tab:SPGLS-real-MSE",
        _REAL,
        quick=Grid((100, 300), 2, once={"sdp": 0}, up_to={"sdp": 100}, slow={"sdp": 10.0}),
        machine=Grid(_even(100, 300, 5), 3, once={"sdp": 0}, slow={"sdp": 20.0}),
        paper=Grid(_even(100, 300, 21), 10, seconds=HOURS),
    ),
    _real(
        "blog",
        "Blog feedback",
        "Figure fig:bloginsurtime, Tables tab:SPGLS-real-reltol and tab:SPGLS-real-MSE",
        _REAL,
        quick=Grid((5000,), 1, up_to={"sdp": 0}, seconds=60.0),
        machine=Grid(
            (5000, 20000, 35000, 50000),
            3,
            once={"sdp": 0},
            up_to={"sdp": 5000},
            slow={"sdp": 30.0},
        ),
        paper=Grid(_even(5000, 50000, 10), 10, seconds=HOURS),
    ),
    _dense(
        0.1,
        "Tables tab:syn-dense and tab:SPGLS-dense-reltol",
        "SOCP takes several tens of times as long as LTRSR (11 to 61 times), RTRNewton is faster "
        "than SOCP from n = 4000 on, and decomposition is about 40% of SOCP's time.",
    ),
    _dense(
        0.01,
        "Tables tab:app-syn-dense and tab:SPGLS-dense-reltol",
        "As at gamma 0.1 (13 to 68 times); LTRSR stays below 6 seconds where SOCP takes up to 118.",
    ),
    _sparse(0.5, 5000),
    _sparse(1.0, 10000),
    _sparse(2.0, 5000),
    _sparse(3.0, 5000),
    Experiment(
        "sparse-errors",
        "Sparse synthetic games, gamma 0.01: relative errors",
        "Objectives of LTRSR and RTRNewton differ from SOCP's by 3e-5 at most.",
        "Table tab:SPGLS-sparse-reltol",
        "synthetic",
        LARGE,
        {
            "quick": Grid((500,), 2, seconds=60.0),
            "machine": Grid((2000, 4000), 3, once={"socp": 2000}),
            "paper": Grid(
                (10000, 15000, 20000, 25000, 30000), 10, once={"socp": 10000}, seconds=4 * HOURS
            ),
        },
        0.01,
        densities=DENSITIES,
        ratios=(3.0, 2.0, 1.0, 0.5),
    ),
    Experiment(
        "conic",
        "Semidefinite programs: time against features",
        "A single SDP replaces tens of them, the SOCP is over 20,000 times faster than those, and "
        "SOCP, LTRSR and RTRNewton are much faster than the SDP.",
        "Sections 1 and 5.2",
        "synthetic",
        ("bisection", *SMALL),
        {
            "quick": Grid((10, 20, 40), 1, seconds=15.0),
            "machine": Grid(
                (10, 20, 40, 80, 120, 200, 280), 1, up_to={"bisection": 120}, seconds=60.0
            ),
            "paper": Grid((10, 20, 40, 80, 120, 150, 200, 300), 3, seconds=HOURS),
        },
        densities=(None,),
        ratios=(2.0,),
    ),
    Experiment(
        "agreement",
        "One objective by every method, on all rows of the real sets",
        "All methods solve the same problem to a very high accuracy.",
        "Section 5.1 and Appendix C",
        "agreement",
        ALL,
        {
            "quick": Grid(slow={"sdp": 5.0, "bisection": 5.0}, seconds=60.0),
            "machine": Grid(slow={"sdp": 30.0, "bisection": 60.0}),
            "paper": Grid(seconds=HOURS),
        },
        sources=("wine", "insurance", "building", "blog"),
    ),
    Experiment(
        "error-curves",
        "Error on held-out rows over gamma, 10-fold",
        "Under attack the game has the least error on all sets (2021).",
        "Wang et al. 2021, error curves",
        "curves",
        (CURVES,),
        {scale: Grid(seeds=10) for scale in SCALES},
        sources=("wine", "insurance", "building", "blog"),
    ),
)

#: By id, in the order of the page.
EXPERIMENTS: Mapping[str, Experiment] = {experiment.id: experiment for experiment in _LIST}


def find_experiments(ids: Iterable[str]) -> tuple[Experiment, ...]:
    """Return experiments by id, in the order asked for, each once.

    Parameters
    ----------
    ids : iterable of str
        Keys of ``EXPERIMENTS``.

    Returns
    -------
    tuple of Experiment

    Raises
    ------
    ValueError
        There is no such experiment.

    Examples
    --------
    >>> from reproduction import find_experiments
    >>> [experiment.place for experiment in find_experiments(["sparse-0.5n"])]
    ['Table tab:syn-sparse']
    """
    found = dict.fromkeys(ids)
    for name in found:
        if name not in EXPERIMENTS:
            raise ValueError(
                f"There is no experiment {name!r}. There are: {', '.join(EXPERIMENTS)}."
            )
    return tuple(EXPERIMENTS[name] for name in found)
