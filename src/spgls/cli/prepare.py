"""From a table and options to rows, labels, goals and costs: what a game is made of."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spgls.cli.console import Trouble
from spgls.cli.delimited import Wanted
from spgls.cli.options import DataOptions, PeopleOptions
from spgls.cli.read_table import column_names_of, read_table
from spgls.cli.table_data import TableData, find_column
from spgls.game.actions import Actions, Switches
from spgls.game.between import Between
from spgls.game.costs import read_cost

__all__ = ["Prepared", "listed", "prepare", "read_data", "read_goal_options", "read_range"]

#: Different texts of a column beyond which it names rows and does not sort them.
_CATEGORIES = 100
#: Names of the steps of an encoder.
NUMBERS, CATEGORIES = "number", "category"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A game in numbers, on rows to learn from and rows to judge by.

    Attributes
    ----------
    encoder : ColumnTransformer or None
        What turns a table into numbers; None where it holds nothing else.
    X, X_test : data frame
        Rows as the model sees them.
    y, y_test : ndarray
        Labels.
    z, z_test : ndarray or None
        Goals from a column, if there is one.
    cost : ndarray of shape (n,) or Moves
        Cost of a squared unit of each column that the model sees, or what people can do.
    groups : dict
        Columns that the model sees by column of the table.
    names : list of str
        Columns of the table that are features.
    notes : list of str
        What was assumed.
    """

    encoder: Any
    X: Any
    X_test: Any
    y: np.ndarray
    y_test: np.ndarray
    z: np.ndarray | None
    z_test: np.ndarray | None
    cost: Any
    groups: dict[str, list[str]]
    names: list[str]
    notes: list[str]

    @property
    def held_out(self) -> bool:
        """Whether rows to judge by are others than those to learn from."""
        return self.X_test is not self.X


def read_data(options: DataOptions, aside: Sequence[tuple[str, str]]) -> TableData:
    """Read the table of a command.

    Parameters
    ----------
    options : DataOptions
        The table, and how to read it.
    aside : sequence of pairs
        Columns that are not features, each with the option that named it.
    """
    wanted = Wanted(separator=options.separator, encoding=options.encoding, sheet=options.sheet)
    names = column_names_of(options.data, wanted)
    for name, option in aside:
        find_column(name, names, option, options.data)
    drop = listed(options.drop, names, "--drop", options.data)
    for name, option in aside:
        if name in drop:
            raise Trouble(f"--drop names {name!r}, and so does {option}; drop one of them.")
    return read_table(
        options.data,
        Wanted(
            aside=tuple(name for name, _ in aside),
            drop=tuple(drop),
            text=tuple(listed(options.category, names, "--category", options.data)),
            separator=options.separator,
            encoding=options.encoding,
            sheet=options.sheet,
        ),
    )


def prepare(options: PeopleOptions, *, classes: bool) -> Prepared:
    """Read a table and make a game of it.

    Parameters
    ----------
    options : PeopleOptions
        All that was said.
    classes : bool
        Whether labels are classes.
    """
    share = options.test_size
    if not 0.0 <= share < 1.0:
        raise Trouble(f"--test-size must be from 0, hold out no rows, to below 1; got {share:g}.")
    if options.units not in ("sd", "raw"):
        raise Trouble(f"--units must be 'sd' or 'raw'; got {options.units!r}.")
    if options.z == options.y:
        raise Trouble(f"--z names the column of --y, {options.y!r}; goals are another column.")
    aside = [(options.y, "--y")] + ([] if options.z is None else [(options.z, "--z")])
    table = read_data(options, aside)
    notes = list(table.notes)
    if not table.names:
        raise Trouble(f"{table.path} has no column left to predict {options.y!r} from.")
    _refuse_missing(table, options)
    labels = _labels(table, options.y, "--y", classes)
    goals = None if options.z is None else _labels(table, options.z, "--z", classes)
    train, test = _split(table.rows, share, options.seed, options.data)
    if len(test):
        _reorder(table, np.concatenate([train, test]))
    cut = len(train)
    frame = table.frame()
    encoder = _encoder(table, options.impute, notes)
    X: Any = frame.iloc[:cut]
    X_test: Any = frame.iloc[cut:] if len(test) else X
    if encoder is not None:
        encoder.fit(X)
        X = encoder.transform(X)
        X_test = encoder.transform(X_test) if len(test) else X
    groups = _groups(table, list(X.columns), encoder)
    cost = _costs(options, table, X, groups, notes)
    order = np.concatenate([train, test])
    y, z = labels[order], None if goals is None else goals[order]
    if not classes and np.ptp(y[:cut]) == 0.0:
        raise Trouble(f"--y names {options.y!r}, which holds one value only, {y[0]:g}.")
    _note_rows(notes, table.rows, cut, len(test))
    return Prepared(
        encoder,
        X,
        X_test,
        y[:cut],
        y[cut:] if len(test) else y,
        None if z is None else z[:cut],
        None if z is None else z[cut:] if len(test) else z,
        cost,
        groups,
        table.names,
        notes,
    )


def _note_rows(notes: list[str], rows: int, cut: int, held: int) -> None:
    if held:
        notes.append(f"Fitted to {cut} of {rows} rows; errors are on the other {held}.")
    else:
        notes.append(f"Fitted to all {rows} rows; errors are on the same rows, hence too good.")


def listed(given: Sequence[str] | None, names: Sequence[str], option: str, path: Path) -> list[str]:
    """Names of columns in an option: one, or several between commas.

    Parameters
    ----------
    given : list of str or None
        What was passed.
    names : list of str
        The columns there are.
    option : str
        Which option it is.
    path : Path
        The table, for errors.
    """
    found = []
    for one in given or ():
        parts = [one] if one in names else [part.strip() for part in one.split(",")]
        found += [find_column(part, names, option, path) for part in parts]
    return list(dict.fromkeys(found))


def read_range(text: str, option: str) -> float | Between:
    """A number, or a range ``A:B`` of which nobody knows where in it the number lies."""
    try:
        low, colon, high = text.partition(":")
        return Between(float(low), float(high)) if colon else float(text)
    except ValueError as error:
        if "low must not" in str(error):
            raise Trouble(f"{option} must be a range A:B with A below B; got {text!r}.") from None
        raise Trouble(f"{option} must be a number or a range A:B; got {text!r}.") from None


def read_goal_options(given: dict[str, Any]) -> str:
    """The one option that says what people want.

    Parameters
    ----------
    given : dict
        Values by option; None or False where one was not passed.
    """
    passed = [name for name, value in given.items() if value is not None and value is not False]
    if len(passed) != 1:
        what = "none" if not passed else " and ".join(passed)
        raise Trouble(f"Say what people want by exactly one of {', '.join(given)}; got {what}.")
    return passed[0]


def _labels(table: TableData, name: str, option: str, classes: bool) -> np.ndarray:
    if not classes:
        return table.number(name, option)
    table.refuse_holes(name, option)
    column = table.aside[name]
    if column.dtype != object and (column == np.rint(column)).all():
        return column.astype(np.int64)
    # Text of one width, whose classes a model file can hold.
    return column if column.dtype != object else column.astype(str)


def _refuse_missing(table: TableData, options: PeopleOptions) -> None:
    holes = {name: count for name, count in table.missing.items() if name in table.names}
    if not holes or options.impute:
        empty = [name for name, count in holes.items() if count == table.rows]
        if empty:
            raise Trouble(f"Column {empty[0]!r} of {table.path} is empty; --drop it.")
        return
    shown = ", ".join(f"{name!r} {count}" for name, count in list(holes.items())[:8])
    more = f" and {len(holes) - 8} more" if len(holes) > 8 else ""
    raise Trouble(
        f"{table.path} has missing cells in {len(holes)} of {len(table.names)} columns: {shown}"
        f"{more}. Remove those rows or columns (--drop), or fill them with --impute."
    )


def _split(rows: int, share: float, seed: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows to judge by, as scikit-learn splits them."""
    from sklearn.model_selection import train_test_split

    if rows < 4:
        raise Trouble(f"{path} has {rows} {'row' if rows == 1 else 'rows'} of data; 4 are needed.")
    if share == 0.0:
        return np.arange(rows), np.arange(0)
    if min(round(share * rows), rows - round(share * rows)) < 2:
        raise Trouble(
            f"--test-size {share:g} of {rows} rows leaves too few to fit or to judge by; 0 holds "
            "out none."
        )
    train, test = train_test_split(np.arange(rows), test_size=share, random_state=seed)
    return train, test


def _reorder(table: TableData, order: np.ndarray) -> None:
    """Put rows in another order, a column at a time: a copy of all would not fit."""
    for row in (*table.numbers, *table.texts.values()):
        row[:] = row[order]


def _encoder(table: TableData, impute: bool, notes: list[str]) -> Any:
    """What turns the table into numbers; None where it holds nothing else."""
    holes = impute and any(name in table.names for name in table.missing)
    if not table.texts and not holes:
        return None
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    parts: list[tuple[str, Any, list[str]]] = []
    if table.number_names:
        step: Any = SimpleImputer(strategy="median") if holes else "passthrough"
        parts.append((NUMBERS, step, table.number_names))
    if table.texts:
        kinds = [_kinds(name, cells) for name, cells in table.texts.items()]
        step = OneHotEncoder(categories=kinds, sparse_output=False)
        if holes:
            step = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), step)
        parts.append((CATEGORIES, step, list(table.texts)))
        shown = ", ".join(
            f"{name!r} ({len(kind)})" for name, kind in zip(table.texts, kinds, strict=True)
        )
        notes.append(f"Categories, one column for each kind: {shown}.")
    if holes:
        notes.append(
            "Missing numbers are the median of their column, missing categories the most frequent."
        )
    made = [
        *table.number_names,
        *(f"{name}_{kind}" for name, cells in table.texts.items() for kind in _kinds(name, cells)),
    ]
    # Names stay short unless two columns would have the same.
    encoder = ColumnTransformer(parts, verbose_feature_names_out=len(set(made)) < len(made))
    return encoder.set_output(transform="pandas")


def _kinds(name: str, cells: np.ndarray) -> np.ndarray:
    """The different texts of a column."""
    kinds = sorted({cell for cell in cells if cell is not None})
    if len(kinds) > _CATEGORIES:
        raise Trouble(
            f"Column {name!r} holds {len(kinds)} different texts, too many for categories: does it "
            f"name people, or dates? Pass --drop {name!r}, or turn it into numbers."
        )
    longest = max(map(len, kinds))
    if longest > 1000:
        raise Trouble(f"Column {name!r} holds a text of {longest} characters; --drop it.")
    return np.array(kinds, dtype=object)


def _groups(table: TableData, columns: list[str], encoder: Any) -> dict[str, list[str]]:
    """Columns that the model sees by column of the table."""
    if encoder is None:
        return {name: [name] for name in columns}
    seen = iter(columns)
    groups = {name: [next(seen)] for name in table.number_names}
    for name, cells in table.texts.items():
        groups[name] = [next(seen) for _ in _kinds(name, cells)]
    return {name: groups[name] for name in table.names}


def _costs(
    options: PeopleOptions, table: TableData, X: Any, groups: dict[str, list[str]], notes: list[str]
) -> Any:
    """Cost of a squared unit of each column that the model sees, or what people can do."""
    if options.actions is not None:
        return _actions(options, list(X.columns), notes)
    names = list(groups)
    given = _read_costs(options.cost, names, options.data)
    fixed = listed(options.immutable, names, "--immutable", options.data)
    for name in fixed:
        if name in given:
            raise Trouble(f"--immutable names {name!r}, and so does --cost; drop one of them.")
    place = {name: at for at, name in enumerate(X.columns)}
    cost = np.ones(len(place))
    for name, columns in groups.items():
        at = [place[one] for one in columns]
        if name in fixed or (name in table.texts and name not in given):
            cost[at] = math.inf
            continue
        cost[at] = given.get(name, 1.0)
        if options.units == "sd" and name not in table.texts:
            spread = float(X.iloc[:, at[0]].to_numpy().var())
            # A column that never varies can be changed at any price: it is worth nothing.
            cost[at] /= spread if spread > 0.0 else 1.0
    if not np.isfinite(cost).any():
        raise Trouble(
            "Nobody can change any feature, so there is no game. Name features that people can "
            "change, with --cost COL=1 for categories."
        )
    unit = "standard deviation" if options.units == "sd" else "unit"
    still = [name for name in names if np.isinf(cost[place[groups[name][0]]])]
    text = f"A {unit} of each number costs people the same to change"
    text += ", times its --cost" if given else ""
    notes.append(f"{text}; immutable: {', '.join(map(repr, still)) if still else 'nothing'}.")
    switched = {name: Switches(given[name]) for name in given if name in table.texts}
    if not switched:
        return cost
    notes.append(f"People can switch between the kinds of {', '.join(map(repr, switched))}.")
    within = {one for name in switched for one in groups[name]}
    priced = {name: cost[at] for name, at in place.items() if name not in within}
    return read_cost(priced | switched, len(place), list(place))


def _actions(options: PeopleOptions, columns: list[str], notes: list[str]) -> Any:
    """What people can do, from a file."""
    if options.cost or options.immutable:
        other = "--cost" if options.cost else "--immutable"
        raise Trouble(f"--actions was given and so was {other}; drop one of them.")
    wanted = (
        "--actions must name a JSON file such as "
        f"{{'exercise': {{'effects': {{'{columns[0]}': -1}}, 'cost': 2}}}}"
    )
    path = options.actions
    assert path is not None
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        effects = {str(name): dict(one["effects"]) for name, one in given.items()}
        cost = {str(name): one.get("cost", 1.0) for name, one in given.items()}
        strange = [key for one in given.values() for key in one if key not in ("effects", "cost")]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Trouble(f"{wanted}; {path} is not one ({type(error).__name__}: {error}).") from None
    if strange or not effects:
        raise Trouble(f"{wanted}; {path} holds {strange[0] if strange else 'no action'!r}.")
    try:
        moves = read_cost(Actions(effects, cost=cost), len(columns), columns)
    except (TypeError, ValueError) as error:
        raise Trouble(f"--actions {path}: {error}") from None
    notes.append(
        f"People can do {len(effects)} things, in units of the table: {', '.join(effects)}. What "
        "none of them changes is immutable."
    )
    return moves


def _read_costs(given: Sequence[str] | None, names: Sequence[str], path: Path) -> dict[str, float]:
    costs = {}
    for one in given or ():
        whole = one.rpartition("=")[0] in names
        for part in [one] if whole else one.split(","):
            name, sign, value = part.strip().rpartition("=")
            try:
                price = float(value)
            except ValueError:
                price = math.nan
            if not sign or not price > 0.0:
                raise Trouble(
                    f"--cost must be COL=V with a positive number V, several between commas; got "
                    f"{part.strip()!r}."
                )
            costs[find_column(name, names, "--cost", path)] = price
    return costs
