"""Games on rows that come in pieces: what the rows add up to, and every game on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal, TypeAlias

import numpy as np

from spgls.base.archive import read_arrays, write_arrays
from spgls.base.frames import column_names
from spgls.base.machine import available_memory
from spgls.base.types import Number, Numbers, Table, Vector
from spgls.base.validation import (
    check_choice,
    check_flag,
    check_number,
    check_vector,
    check_weight,
)
from spgls.game.between import Between
from spgls.game.costs import Costs, read_cost
from spgls.game.goals import GoalLike, read_goals
from spgls.game.moves import Cost
from spgls.game.providers import Population, PopulationRange
from spgls.matrix import Matrix, as_matrix
from spgls.reduction.added import Added, Factor, Moments
from spgls.reduction.data import NullSpace, read_null_space
from spgls.reduction.game_sums import GameSums, game_of_sums
from spgls.solvers.by_reduction import certify_predictor
from spgls.solvers.dispatch import play_sums
from spgls.solvers.ranges import certify_against_range
from spgls.solvers.returned import judged_as_given
from spgls.solvers.small import as_game
from spgls.solvers.solution import Solution, latest
from spgls.solvers.solutions import Path
from spgls.solvers.solve import read_gammas, read_people, read_ridge
from spgls.solvers.units import units_of_sums
from spgls.sphere import Certificate

__all__ = ["GameStatistics", "Method"]

#: How rows are added up.
Method: TypeAlias = Literal["moments", "triangular"]
_METHODS: dict[str, type[Added]] = {one.method: one for one in (Moments, Factor)}

#: Columns up to which sums are kept,
_MOST_COLUMNS = 10_000
#: how many times what is kept is needed to make it, and which share of the free memory it may take.
_COPIES, _SHARE = 4, 0.9
#: What a file holds, and the version of its format.
_KIND, _VERSION = "spgls statistics", 1


@dataclass(frozen=True, eq=False, repr=False)
class GameStatistics:
    """What rows, labels and goals add up to: enough for every game on them, and no row.

    Made by :meth:`from_data`. Statistics of different rows add up to those of all of them, so that
    data can come in pieces, lie in several places, or be forgotten. Every strength, population,
    ridge and cost is then solved from the sums alone, as exactly as from the rows: the certificate
    accounts for what rounding did to everything that was ever added or subtracted.

    Attributes
    ----------
    sums : object
        The sums, in double precision.
    names : tuple of str, optional
        Names of the columns, where the data had some.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import GameStatistics, solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=300)
    >>> z = np.maximum(y, 1.0)
    >>> old = GameStatistics.from_data(X[:200], y[:200], z[:200])
    >>> new = GameStatistics.from_data(X[200:], y[200:], z[200:])
    >>> old + new
    GameStatistics(300 rows, 3 columns, moments)
    >>> apart = (old + new).solve(gamma=0.5, fit_intercept=True)
    >>> bool(np.allclose(apart.coef, solve(X, y, z, gamma=0.5, fit_intercept=True).coef))
    True
    >>> apart.certificate.kind
    'proved'
    """

    sums: Added
    names: tuple[str, ...] | None = None

    @classmethod
    def from_data(
        cls,
        X: Table | Matrix,
        y: Numbers,
        z: Numbers | GoalLike,
        *,
        sample_weight: Numbers | None = None,
        method: Method = "moments",
    ) -> GameStatistics:
        """Add rows up, in one read.

        Parameters
        ----------
        X : array-like, data frame, SciPy sparse matrix or array, or Matrix, of shape (m, n)
            Rows before anyone moves them. The sums take ``8 (n + 4)^2`` bytes whatever ``X`` is,
            about four times that while they are made, and go up to 10,000 columns.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable
            Goals, or a function of the labels that returns them, such as ``Floor(250)``.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows, not negative.
        method : {"moments", "triangular"}
            ``"moments"`` keeps second moments: fast, and rows can be taken away again.
            ``"triangular"`` keeps a triangular factor, which has all digits of the data: for
            columns that nearly depend on each other, at about ten times the price.

        Returns
        -------
        GameStatistics
        """
        kind = check_choice(method, "method", tuple(_METHODS))
        matrix = as_matrix(X, check_finite=False)
        labels = check_vector(y, "y", matrix.shape[0], "row of X")
        weight = check_weight(sample_weight, len(labels))
        return cls.of(matrix, labels, read_goals(z, labels), weight, source=X, method=kind)

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        y: Vector,
        z: Vector,
        weight: Vector | None,
        *,
        source: Any,
        method: str = "moments",
    ) -> GameStatistics:
        """Add up what was checked already; ``source`` is what the user passed as ``X``."""
        _check_memory(matrix.shape[1])
        names = column_names(source)
        sums = _METHODS[method].of(matrix, y, z, weight, source)
        return cls(sums, None if names is None else tuple(names))

    @property
    def method(self) -> str:
        """How the rows were added up."""
        return self.sums.method

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.sums.columns

    @property
    def weight(self) -> float:
        """Number of rows, counted by weight."""
        return self.sums.weight

    @property
    def label_spread(self) -> float:
        """Standard deviation of the labels."""
        at, sums, sizes = self.n_features, self.sums.sums, self.sums.sizes
        mean = sums[at] / sums[-1]
        return float(np.sqrt(max(0.0, sizes[at] ** 2 / sums[-1] - mean**2)))

    @property
    def goal_size(self) -> float:
        """Root of the mean square of the goals."""
        return float(self.sums.raw[self.n_features + 1] / np.sqrt(self.weight))

    @property
    def goal_distance(self) -> float:
        """Root of the mean squared distance of the goals from the labels."""
        return float(self.sums.raw[self.n_features + 2] / np.sqrt(self.weight))

    @property
    def nbytes(self) -> int:
        """Memory that the sums take."""
        return self.sums.kept.nbytes + self.sums.shift.nbytes + self.sums.doubt.nbytes

    def __add__(self, other: Any) -> GameStatistics:
        if not isinstance(other, GameStatistics):
            return NotImplemented
        self._check_alike(other)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums.plus(other.sums)
        sums.refuse_infinite()
        return replace(self, sums=sums, names=self.names or other.names)

    def __radd__(self, other: Any) -> GameStatistics:
        # sum() begins with zero.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> GameStatistics:
        if not isinstance(other, GameStatistics):
            return NotImplemented
        self._check_alike(other)
        if not (isinstance(self.sums, Moments) and isinstance(other.sums, Moments)):
            raise ValueError(
                "rows can be subtracted from statistics of method 'moments' only; got "
                f"{self.method!r}. Keep apart what may have to go, and add up the rest."
            )
        return replace(self, sums=self.sums.minus(other.sums))

    def decayed(self, factor: Number) -> GameStatistics:
        """Return the same with all weights times a factor: older rows count less.

        Parameters
        ----------
        factor : float
            Above 0 and at most 1.

        Returns
        -------
        GameStatistics
        """
        share = check_number(factor, "factor", above=0.0, at_most=1.0)
        return self if share == 1.0 else replace(self, sums=self.sums.faded(share))

    def solve(
        self,
        gamma: Number | Between | Population | PopulationRange,
        *,
        fit_intercept: bool = False,
        feature_cost: Costs | None = None,
        ridge: Number = 0.0,
        null_space: NullSpace = "use",
        tol: Number = 1e-9,
    ) -> Solution:
        """Find the best linear predictor against providers who react to it.

        Parameters
        ----------
        gamma, fit_intercept, feature_cost, ridge, null_space, tol
            As in :func:`spgls.solve`.

        Returns
        -------
        Solution
            Its objective and certificate come from the sums, and say what the sums can know.
        """
        data = self._game(fit_intercept, feature_cost, null_space)
        people, tolerance = read_people(gamma), check_number(tol, "tol", above=0.0)
        return play_sums(data, [people], read_ridge(ridge), tolerance)[0]

    def solve_path(
        self,
        gammas: Iterable[Number | Population],
        *,
        fit_intercept: bool = False,
        feature_cost: Costs | None = None,
        ridge: Number = 0.0,
        null_space: NullSpace = "use",
        tol: Number = 1e-9,
    ) -> Path:
        """Find the best predictor against each of many kinds of providers.

        Parameters
        ----------
        gammas, fit_intercept, feature_cost, ridge, null_space, tol
            As in :func:`spgls.solve_path`.

        Returns
        -------
        Path
        """
        started = perf_counter()
        data = self._game(fit_intercept, feature_cost, null_space)
        people, tolerance = read_gammas(gammas), check_number(tol, "tol", above=0.0)
        solutions = play_sums(data, people, read_ridge(ridge), tolerance)
        stats = replace(latest(solutions), seconds=perf_counter() - started)
        return Path(tuple(as_game(one, 0.0) for one in people), solutions, stats)

    def certify(
        self,
        coef: Numbers,
        gamma: Number | Between | Population | PopulationRange,
        *,
        intercept: Number | None = None,
        feature_cost: Costs | None = None,
        ridge: Number = 0.0,
        null_space: NullSpace = "use",
    ) -> Certificate:
        """Bound how far a predictor is from the best one.

        Parameters
        ----------
        coef : array-like of shape (n,)
            Coefficients to judge, from any source.
        gamma, feature_cost, ridge, null_space
            The game, as in :func:`spgls.solve`.
        intercept : float, optional
            Its intercept. None judges it in the game without an intercept, a number in the game
            with one.

        Returns
        -------
        Certificate
        """
        data = self._game(intercept is not None, feature_cost, null_space)
        penalty, predictor = read_ridge(ridge), self._predictor(coef)
        constant = 0.0 if intercept is None else check_number(intercept, "intercept")
        told = data, predictor, constant, read_people(gamma), penalty
        return judged_as_given(_judged(*told), *told)

    def _predictor(self, coef: Any) -> Vector:
        return check_vector(coef, "coef", self.n_features, "column of the statistics")

    def game(
        self, cost: Cost, *, fit_intercept: bool = False, avoids_null: bool = False
    ) -> GameSums:
        """Return the game on these rows, for given costs."""
        return game_of_sums(self.sums, cost, fit_intercept=fit_intercept, avoids_null=avoids_null)

    def _game(self, fit_intercept: Any, feature_cost: Any, null_space: Any) -> GameSums:
        return self.game(
            read_cost(feature_cost, self.n_features, self.names),
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            avoids_null=read_null_space(null_space),
        )

    def save(self, path: Any) -> None:
        """Write the statistics to a file.

        It holds sums and names of columns, the version of its format and a checksum. A file that
        was there is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path-like
            Where to; a NumPy archive, whatever its name.
        """
        sums = self.sums
        arrays = {
            "method": sums.method,
            "kept": sums.kept,
            "shift": sums.shift,
            "doubt": sums.doubt,
            "rows": sums.rows,
        }
        if self.names is not None:
            arrays["names"] = np.array(self.names, dtype=np.str_)
        write_arrays(path, _KIND, _VERSION, arrays)

    @classmethod
    def load(cls, path: Any) -> GameStatistics:
        """Read statistics that :meth:`save` wrote; files that are not such are refused.

        Parameters
        ----------
        path : str or path-like
            Where from.

        Returns
        -------
        GameStatistics
        """
        found = read_arrays(path, _KIND, _VERSION)
        kind = _METHODS[str(found["method"])]
        sums = kind(found["kept"], found["shift"], found["doubt"], int(found["rows"]))
        names = found.get("names")
        return cls(sums, None if names is None else tuple(map(str, names)))

    def _check_alike(self, other: GameStatistics) -> None:
        """Refuse statistics of other columns, or of another kind."""
        if self.method != other.method:
            raise ValueError(
                f"statistics must be of one method; got {self.method!r} and {other.method!r}. "
                "Add all rows up by the same one."
            )
        if self.n_features != other.n_features:
            raise ValueError(
                f"statistics must have equally many columns; got {self.n_features} and "
                f"{other.n_features}."
            )
        if self.names is None or other.names is None or self.names == other.names:
            return
        pairs = zip(self.names, other.names, strict=True)
        at, (mine, its) = next((i, pair) for i, pair in enumerate(pairs) if len({*pair}) > 1)
        raise ValueError(
            f"statistics must have the same columns in the same order; column {at} is {mine!r} "
            f"and {its!r}."
        )

    def __repr__(self) -> str:
        count = f"{self.weight:.10g} rows" if self.weight != 1.0 else "1 row"
        return f"GameStatistics({count}, {self.n_features} columns, {self.method})"


@np.errstate(all="ignore")
def _judged(
    data: GameSums,
    coef: Vector,
    intercept: float,
    people: Population | PopulationRange,
    penalty: float,
) -> Certificate:
    """How far a predictor is from the best, on the columns that are played on."""
    constant = intercept + float(data.layout.offset(coef))
    predictor = data.layout.inwards(coef)
    units = units_of_sums(data, [people], penalty)
    if units is not None:
        data, predictor, constant = (
            units.told_of_sums(data),
            units.coef(predictor),
            constant * units.b,
        )
    told = data, predictor, constant
    weight = penalty if units is None else units.ridge(penalty)
    if isinstance(people, PopulationRange):
        among = people if units is None else units.people(people)
        proof = certify_against_range(*told, among, weight)
    else:
        who = as_game(people, penalty)
        proof = certify_predictor(*told, who if units is None else units.people(who), weight)
    return proof if units is None else units.of_certificate(proof)


def _check_memory(n: int) -> None:
    """Refuse sums that are too large, before they are made."""
    size = 8.0 * (n + 4) ** 2
    if n > _MOST_COLUMNS:
        raise ValueError(
            f"X has {n} columns, whose sums would take {size / 1e9:.3g} GB; statistics go up to "
            f"{_MOST_COLUMNS} columns. Use solve(X, y, z, gamma, solver='krylov'), which keeps "
            "sparse data sparse."
        )
    if size > 1e8 and _COPIES * size > _SHARE * available_memory():
        raise MemoryError(
            f"sums of {n} columns would take {size / 1e9:.3g} GB, {_COPIES} times that while they "
            f"are made, and {available_memory() / 1e9:.3g} GB are free. Use "
            "solve(X, y, z, gamma, solver='krylov')."
        )
