"""What is refused, and whether the error says which argument, what was given and what to do."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from spgls import (
    Cap,
    Constant,
    Floor,
    Population,
    Scale,
    Shift,
    Status,
    best_response,
    certify,
    compare_solvers,
    gamma_from_pull,
    make_attacked_scorer,
    movement,
    predict_attacked,
    solve,
    undo_response,
)
from spgls.solvers import GLTR, Spectral

M, N = 6, 3
X = np.random.default_rng(0).normal(size=(M, N))
y = X @ [1.0, 2.0, 3.0] + 0.5
z = y + np.linspace(0.0, 1.0, M)
coef = np.array([1.0, -1.0, 0.5])
nan, inf = np.nan, np.inf
anything = object()
model = LinearRegression().fit(X, y)

FUNCTIONS = {
    "solve": (solve, {"X": X, "y": y, "z": z, "gamma": 0.5}),
    "compare_solvers": (compare_solvers, {"X": X, "y": y, "z": z, "gamma": 0.5}),
    "certify": (certify, {"X": X, "y": y, "z": z, "gamma": 0.5, "coef": coef}),
    "best_response": (best_response, {"X": X, "z": z, "coef": coef, "gamma": 0.5}),
    "movement": (movement, {"X": X, "z": z, "coef": coef, "gamma": 0.5}),
    "undo_response": (undo_response, {"X_hat": X, "z": z, "coef": coef, "gamma": 0.5}),
    "gamma_from_pull": (gamma_from_pull, {"pull": 0.5, "coef": coef}),
    "predict_attacked": (predict_attacked, {"model": model, "X": X, "z": z, "gamma": 0.5}),
    "make_attacked_scorer": (make_attacked_scorer, {"gamma": 0.5}),
    "Shift": (Shift, {"amount": 1.0, "lower": 0.0, "upper": 2.0}),
    "Scale": (Scale, {"factor": 2.0, "lower": 0.0, "upper": 2.0}),
    "Floor": (Floor, {"level": 1.0}),
    "Cap": (Cap, {"level": 1.0}),
    "Constant": (Constant, {"level": 1.0}),
    "Population": (Population, {"gammas": [inf, 1.0, 2.0], "shares": [0.5, 0.25, 0.25]}),
    "Population.mixed": (Population.mixed, {"gamma": 0.5, "honest": 0.5}),
}


def changed(vector, at, value):
    out = np.array(vector)
    out[at] = value
    return out


def masked(values):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[0] = True
    return np.ma.array(values, mask=mask)


frame = pd.DataFrame(X, columns=["age", "income", "city"])
text_frame = frame.assign(city=["Paris", "Rome", "Oslo", "Bonn", "Bern", "Riga"])
digit_frame = frame.assign(city=list("123456"))
category_frame = text_frame.astype({"city": "category"})
date_frame = frame.assign(city=pd.date_range("2020-01-01", periods=M))
missing_frame = frame.assign(age=pd.array([1, None, 3, 4, 5, 6], dtype="Int64"))
nan_frame = frame.assign(income=changed(X[:, 1], 2, nan))
text = np.full((M, N), "a")
mixed = X.astype(object)
mixed[1, 2] = "b"

TABLES = [
    (None, TypeError, "must be a table of numbers.*got None"),
    ("rows", TypeError, "must be a table of numbers.*got 'rows'"),
    ({"a": [1.0]}, TypeError, "must be a table of numbers.*got a dict"),
    ({1.0, 2.0}, TypeError, "must be a table of numbers.*got a set"),
    (anything, TypeError, "must be a table of numbers.*got an object"),
    (X * 1j, TypeError, r"got ndarray of shape \(6, 3\) of complex numbers\. Pass its real part"),
    (sp.csr_array(X * 1j), TypeError, r"must be a table of real numbers; got csr_array of shape"),
    (text, TypeError, "row 0, column 0 is 'a'. Encode text"),
    (text.tolist(), TypeError, "got a list whose row 0, column 0 is 'a'. Encode text"),
    (np.full((M, N), "1.5"), TypeError, "row 0, column 0 is '1.5'. Encode text"),
    (mixed, TypeError, "row 1, column 2 is 'b'. Encode text"),
    (text_frame, TypeError, "row 0, column 'city' is 'Paris'. Encode text.*OneHotEncoder"),
    (category_frame, TypeError, "row 0, column 'city' is 'Paris'. Encode text"),
    (digit_frame, TypeError, "row 0, column 'city' is '1'. Encode text"),
    (date_frame, TypeError, "row 0, column 'city' is a Timestamp. Turn dates"),
    (missing_frame, TypeError, "row 1, column 'age' is a NAType. Drop or impute missing"),
    (masked(X), TypeError, r"MaskedArray of shape \(6, 3\) with masked entries. Drop"),
    ([[1.0, 2.0], [3.0]], ValueError, "got a list whose entries differ in length"),
    (1.0, ValueError, r"must have two dimensions; got shape \(\)"),
    (X[:, 0], ValueError, r"two dimensions; got shape \(6,\).*reshape\(-1, 1\).*one column"),
    (X[:, :, None], ValueError, r"must have two dimensions; got shape \(6, 3, 1\)"),
    ([], ValueError, r"at least one row and one column; got shape \(0,\)"),
    ([[]], ValueError, r"at least one row and one column; got shape \(1, 0\)"),
    (X[:0], ValueError, r"at least one row and one column; got shape \(0, 3\)"),
    (X[:, :0], ValueError, r"at least one row and one column; got shape \(6, 0\)"),
    (sp.csr_array((0, 3)), ValueError, r"at least one row and one column; got shape \(0, 3\)"),
    (changed(X, (2, 1), nan), ValueError, "finite; row 2, column 1 is nan. Drop or impute"),
    (changed(X, (2, 1), inf), ValueError, "finite; row 2, column 1 is inf. Drop or impute"),
    (changed(X, (2, 1), -inf), ValueError, "finite; row 2, column 1 is -inf. Drop or impute"),
    ([[1.0, None, 2.0]] * M, ValueError, "finite; row 0, column 1 is nan"),
    (changed(X.astype("f4"), (5, 0), nan), ValueError, "finite; row 5, column 0 is nan"),
    (nan_frame, ValueError, "finite; row 2, column 'income' is nan"),
    (sp.csr_array(changed(X, (2, 1), nan)), ValueError, "finite; row 2, column 1 is nan"),
    (sp.csc_matrix(changed(X, (2, 1), inf)), ValueError, "finite; row 2, column 1 is inf"),
    (sp.coo_array(changed(X, (2, 1), inf)), ValueError, "finite; row 2, column 1 is inf"),
]


def vectors(values, per, length, *, finite=True):
    """Bad values of a vector that has one entry per row or column."""
    good = np.asarray(values, dtype=float)
    rows = [
        ("abc", TypeError, "must be an array of numbers; got 'abc'"),
        ({"a": 1.0}, TypeError, "must be an array of numbers; got a dict"),
        (anything, TypeError, "must be an array of numbers; got an object"),
        (good * 1j, TypeError, "of complex numbers. Pass its real part"),
        (["a"] * length, TypeError, "got a list whose entry 0 is 'a'. Encode text"),
        (["1"] * length, TypeError, "got a list whose entry 0 is '1'. Encode text"),
        (pd.Series(["a"] * length), TypeError, "got Series of shape .* whose entry 0 is 'a'"),
        (
            sp.csr_array(good[:, None]),
            TypeError,
            r"must be a dense array; got csr_array of shape .*\.toarray\(\)\.ravel\(\)",
        ),
        (masked(good), TypeError, "with masked entries"),
        ([[1.0, 2.0], [3.0]], ValueError, "got a list whose entries differ in length"),
        (np.ones((length, 2)), ValueError, rf"one dimension.*got shape \({length}, 2\)"),
        (np.ones((length, 1, 1)), ValueError, rf"one dimension.*got shape \({length}, 1, 1\)"),
        (good[:, None], ValueError, rf"got shape \({length}, 1\)\. Pass \w+\.ravel\(\)"),
        (good[None, :], ValueError, rf"got shape \(1, {length}\)\. Pass \w+\.ravel\(\)"),
        (good[:, None].tolist(), ValueError, r"Pass numpy\.asarray\(\w+\)\.ravel\(\)"),
        (pd.DataFrame(good), ValueError, r"Pass numpy\.asarray\(\w+\)\.ravel\(\)"),
        (good[:-1], ValueError, rf"one entry per {per}, {length}; got {length - 1}"),
        (np.append(good, 1.0), ValueError, rf"one entry per {per}, {length}; got {length + 1}"),
        ([], ValueError, rf"one entry per {per}, {length}; got 0"),
    ]
    if finite:
        advice = "Drop or impute such rows" if "row" in per else "Replace it"
        rows += [
            (changed(good, 1, bad), ValueError, f"must be finite; entry 1 is {bad}. {advice}")
            for bad in (nan, inf, -inf)
        ]
        rows.append(([*good[:-1], None], ValueError, f"entry {length - 1} is nan"))
    return rows


SCALAR = (1.0, ValueError, r"one dimension.*got shape \(\)")
NOTHING = (None, TypeError, "must be an array of numbers; got None")
NUMBERS = [
    ("abc", TypeError, "must be a finite number.*got 'abc'"),
    ({"a": 1.0}, TypeError, "must be a finite number.*got a dict"),
    (anything, TypeError, "must be a finite number.*got an object"),
    (1j, TypeError, "must be a finite number.*got 1j"),
    (np.complex128(1j), TypeError, "must be a finite number.*got 1j"),
    (True, TypeError, "must be a finite number.*got True"),
    (np.True_, TypeError, "must be a finite number.*got True"),
    ([1.0], TypeError, "must be a finite number.*got a list"),
    (np.ones(2), TypeError, r"must be a finite number.*got ndarray of shape \(2,\)"),
    (float, TypeError, r"must be a finite number.*got the class float"),
    (Decimal("0.5"), TypeError, "must be a finite number.*got a Decimal"),
    (nan, ValueError, "must be a finite number.*got nan"),
    (np.float64(nan), ValueError, "must be a finite number.*got nan"),
    (inf, ValueError, "must be a finite number.*got inf"),
    (-inf, ValueError, "must be a finite number.*got -inf"),
    (10**400, ValueError, "must be a finite number.*got 1000"),
    (-(10**400), ValueError, "must be a finite number.*got -1000"),
]
NO_NUMBER = (None, TypeError, "must be a finite number.*got None")
POSITIVE = [
    NO_NUMBER,
    *NUMBERS,
    (0, ValueError, "must be a finite number above 0; got 0"),
    (-1.0, ValueError, "must be a finite number above 0; got -1.0"),
]
RIDGES = [
    NO_NUMBER,
    *NUMBERS,
    (-1.0, ValueError, "must be a finite number of at least 0; got -1.0"),
]
HONEST = [
    NO_NUMBER,
    *NUMBERS,
    (-1.0, ValueError, "of at least 0 and of at most 1; got -1.0"),
    (1.5, ValueError, "of at least 0 and of at most 1; got 1.5"),
]
# What to do about a bad gamma differs from what to do about a bad tolerance.
ONE_GAMMA = [
    (value, error, f"{message}.*gamma_from_pull.*pass a Population")
    for value, error, message in [
        *POSITIVE,
        ("auto", TypeError, "got 'auto'"),
        (np.ones(M), TypeError, r"got ndarray of shape \(6,\)"),
    ]
]
WANTED = "must be one positive number or one per row of X(_hat)?, 6, inf for honest providers; "
AUTO = "auto"
GAMMAS = [
    (None, TypeError, f"{WANTED}got None"),
    (AUTO, TypeError, f"{WANTED}got 'auto'"),
    ({"a": 1.0}, TypeError, f"{WANTED}got a dict"),
    (True, TypeError, f"{WANTED}got True"),
    (np.True_, TypeError, f"{WANTED}got True"),
    (np.ones(M, dtype=bool), TypeError, f"{WANTED}got ndarray of shape .* of truth values"),
    (1j, TypeError, "complex numbers"),
    (anything, TypeError, "must be an array of numbers; got an object"),
    (0.0, ValueError, f"{WANTED}got 0.0"),
    (-1, ValueError, f"{WANTED}got -1"),
    (nan, ValueError, f"{WANTED}got nan"),
    (-inf, ValueError, f"{WANTED}got -inf"),
    (-(10**400), ValueError, f"{WANTED}got -1000"),
    (np.asarray(-1.0), ValueError, f"{WANTED}got ndarray of shape"),
    (changed(np.ones(M), 2, 0.0), ValueError, f"{WANTED}entry 2 is 0.0"),
    (changed(np.ones(M), 2, nan), ValueError, f"{WANTED}entry 2 is nan"),
    (np.ones((M, 1)), ValueError, r"gamma must have one dimension.*gamma\.ravel\(\)"),
    (np.ones(M + 1), ValueError, r"gamma must have one entry per row of X(_hat)?, 6; got 7"),
    ([], ValueError, "one entry per row of X(_hat)?, 6; got 0"),
    (["a"] * M, TypeError, "got a list whose entry 0 is 'a'"),
    (sp.csr_array(np.ones((M, 1))), TypeError, r"toarray\(\)"),
]


MAPPINGS = [
    ({1: 1.0}, TypeError, "must have column names as keys; got the key 1. Pass an array"),
    ({"age": 0.0}, ValueError, r"\['age'\] must be a positive number, inf for .*got 0.0"),
    ({"age": nan}, ValueError, r"\['age'\] must be a positive number, inf for .*got nan"),
    ({"age": "1"}, TypeError, r"\['age'\] must be a positive number, inf for .*got '1'"),
]


def costs(per, nameless):
    arrays = vectors(np.ones(N), per, N, finite=False)
    return [
        SCALAR,
        *(case for case in arrays if not isinstance(case[0], dict)),
        *MAPPINGS,
        ({"age": 1.0}, ValueError, nameless),
        (changed(np.ones(N), 1, 0.0), ValueError, "positive, inf for a feature.*entry 1 is 0.0"),
        (changed(np.ones(N), 1, -2.0), ValueError, "positive, inf for a feature.*entry 1 is -2.0"),
        (changed(np.ones(N), 1, nan), ValueError, "positive, inf for a feature.*entry 1 is nan"),
        (changed(np.ones(N), 1, -inf), ValueError, "positive, inf for a feature.*entry 1 is -inf"),
    ]


ROWS = vectors(np.ones(M), "row of X(_hat)?", M)
COLUMNS = [NOTHING, SCALAR, *vectors(np.ones(N), "column of X(_hat)?", N)]
SHARES = [
    NOTHING,
    SCALAR,
    *vectors([0.5, 0.25, 0.25], "entry of gammas", 3),
    ([0.5, 0.75, -0.25], ValueError, "must not be negative; entry 2 is -0.25"),
    ([0.5, 0.25, 0.2], ValueError, "must sum to one; they sum to 0.95. Divide by their sum"),
    ([0.5, 0.25, 0.75], ValueError, "must sum to one; they sum to 1.5. Divide by their sum"),
    ([0.0, 0.0, 0.0], ValueError, "must sum to one; they sum to 0"),
]
STRENGTHS = [
    NOTHING,
    SCALAR,
    # A wrong number of strengths is told as a wrong number of shares.
    *(
        case
        for case in vectors([4.0, 1.0, 2.0], "group", 3, finite=False)
        if "per group" not in case[2]
    ),
    ([], ValueError, "one entry per group; got none"),
    ([inf, nan, 1.0], ValueError, "must be a number; entry 1 is nan. Replace it by a number"),
    ([inf, 0.0, 1.0], ValueError, "positive, inf for honest providers; entry 1 is 0.0"),
    ([inf, 1.0, -1.0], ValueError, "positive, inf for honest providers; entry 2 is -1.0"),
    ([inf, -inf, 1.0], ValueError, "positive, inf for honest providers; entry 1 is -inf"),
]
WEIGHTS = [
    SCALAR,
    *ROWS,
    (changed(np.ones(M), 3, -1.0), ValueError, "not be negative; entry 3 is -1.0. Give rows"),
    (np.zeros(M), ValueError, "positive for at least one row; got zero for every row"),
]
FLAGS = [
    (value, TypeError, f"must be True or False; got {given}")
    for value, given in [
        (None, "None"),
        ("yes", "'yes'"),
        (1, "1"),
        (0.0, "0.0"),
        (1j, "1j"),
        ([True], "a list"),
        ({}, "a dict"),
        (anything, "an object"),
        (nan, "nan"),
    ]
]
SOLVERS = [
    ("", ValueError, "must be one of auto, .*spectral.*got ''"),
    ("magic", ValueError, "must be one of auto, .*spectral.*got 'magic'"),
    (
        Spectral,
        TypeError,
        r"or a solver object; got the class Spectral, not an object such as Spectral\(\)",
    ),
    *(
        (value, TypeError, f"must be one of auto, .*spectral.*or a solver object; got {given}")
        for value, given in [
            (None, "None"),
            (1, "1"),
            (1j, "1j"),
            (nan, "nan"),
            (["spectral"], "a list"),
            ({}, "a dict"),
            (anything, "an object"),
        ]
    ),
]
SOLVER_LISTS = [
    (
        "gltr",
        TypeError,
        r"must be None or a list of names and solver objects; got 'gltr'\. Pass \['gltr'\]",
    ),
    *(
        (value, TypeError, f"must be None or a list of names and solver objects; got {given}")
        for value, given in [
            (1, "1"),
            (nan, "nan"),
            (True, "True"),
            ({"gltr": 1}, "a dict"),
            (anything, "an object"),
            (GLTR(), "a GLTR"),
            (GLTR, "the class GLTR, not an object such as"),
        ]
    ),
    ([], ValueError, "must hold at least one name or solver object; got none"),
    (
        ["gltr", "magic"],
        ValueError,
        r"^solvers\[1\] must be one of auto, .*; got 'magic'",
    ),
    (
        ["gltr", GLTR],
        TypeError,
        r"^solvers\[1\] must be one of .*got the class GLTR, not",
    ),
    (["gltr", None], TypeError, r"^solvers\[1\] must be one of .* or a solver object; got None"),
    (["gltr", GLTR()], ValueError, "must differ from each other; got gltr twice"),
    (["spectral", Spectral()], ValueError, "must differ from each other; got spectral twice"),
]
COUNTS = [
    *(
        (value, TypeError, f"must be a positive whole number or None; got {given}")
        for value, given in [
            ("10", "'10'"),
            (10.0, "10.0"),
            (1.5, "1.5"),
            (nan, "nan"),
            (inf, "inf"),
            (True, "True"),
            (np.True_, "True"),
            (1j, "1j"),
            ([10], "a list"),
            (np.array([10]), r"ndarray of shape \(1,\)"),
            (anything, "an object"),
        ]
    ),
    *(
        (value, ValueError, f"must be a positive whole number or None; got {given}")
        for value, given in [(0, "0"), (-1, "-1"), (np.int64(-5), "-5"), (-(10**400), "-1000")]
    ),
]
SEED = r"must be None, a seed \(a whole number of at least 0\) or a numpy Generator; "
RNGS = [
    *(
        (value, TypeError, f"{SEED}got {given}")
        for value, given in [
            ("random", "'random'"),
            (1.0, "1.0"),
            (nan, "nan"),
            (inf, "inf"),
            (True, "True"),
            (1j, "1j"),
            ([1, 2], "a list"),
            (np.arange(2), r"ndarray of shape \(2,\)"),
            (np.random.RandomState(0), r"a RandomState\. Pass numpy\.random\.default_rng\(seed\)"),
            (np.random.Generator, "the class Generator"),
            (anything, "an object"),
        ]
    ),
    *((value, ValueError, f"{SEED}got {value}") for value in (-1, np.int64(-5))),
]
CALLBACKS = [
    (value, TypeError, f"must be None or a function of one Step, such as print; got {given}")
    for value, given in [
        ("print", "'print'"),
        (1, "1"),
        (nan, "nan"),
        (True, "True"),
        ([print], "a list"),
        ({}, "a dict"),
        (anything, "an object"),
    ]
]
PULLS = [
    (value, error, f"{message}.* It is the share of the gap")
    for value, error, message in [
        NO_NUMBER,
        *NUMBERS,
        *(
            (value, ValueError, f"must be a finite number above 0 and below 1; got {value}")
            for value in (0.0, 1.0, -0.5, 1.5)
        ),
    ]
]

NULL_SPACES = [
    (value, error, f"must be one of use, avoid; got {shown}")
    for value, error, shown in [
        ("never", ValueError, "'never'"),
        (None, TypeError, "None"),
        (True, TypeError, "True"),
        (["use"], TypeError, "a list"),
    ]
]
COSTS = costs(
    "column of X(_hat)?",
    r"by column name, but the columns of X(_hat)? have no names.*set_output.*get_feature_names_out",
)
#: Beside a strength.
BUDGETS = [(value, ValueError, "was given and so was gamma") for value in (1.0, -1.0, "a")]
REACTION = {
    "z": [NOTHING, SCALAR, *ROWS],
    "coef": COLUMNS,
    "gamma": GAMMAS,
    "intercept": [NO_NUMBER, *NUMBERS],
    "feature_cost": COSTS,
}
GAME = {
    "X": TABLES,
    "y": [NOTHING, SCALAR, *ROWS],
    "z": [NOTHING, SCALAR, *ROWS],
    "gamma": ONE_GAMMA,
    "feature_cost": COSTS,
    "sample_weight": WEIGHTS,
}
#: Beside goals, labels are one thing too many, whatever they are.
LABELS_TOO: list = []
DENSE = [case for case in TABLES if not sp.issparse(case[0])]
SOLVING = {
    "fit_intercept": FLAGS,
    "ridge": RIDGES,
    "null_space": NULL_SPACES,
    "tol": POSITIVE,
    "max_iter": COUNTS,
    "rng": RNGS,
    "callback": CALLBACKS,
}
BAD = {
    "solve": GAME | SOLVING | {"solver": SOLVERS},
    "compare_solvers": GAME
    | {k: v for k, v in SOLVING.items() if k != "null_space"}
    | {"solvers": SOLVER_LISTS},
    "certify": GAME
    | {"coef": COLUMNS, "intercept": NUMBERS, "ridge": RIDGES}
    | {"null_space": NULL_SPACES},
    "Population": {"gammas": STRENGTHS, "shares": SHARES},
    "Population.mixed": {"gamma": POSITIVE, "honest": HONEST},
    "best_response": {"X": DENSE, "y": LABELS_TOO, "budget": []} | REACTION,
    "movement": {"X": TABLES} | REACTION,
    "undo_response": {"X_hat": DENSE} | REACTION,
    "gamma_from_pull": {
        "pull": PULLS,
        "coef": [
            NOTHING,
            SCALAR,
            *(case for case in COLUMNS if "one entry per" not in case[2]),
            ([], ValueError, "one entry per feature; got none"),
            (np.zeros(N), ValueError, "zero on every changeable feature, so no gamma"),
        ],
        "feature_cost": [
            *costs("entry of coef", "by name, but the entries of coef have none.*Series"),
            (np.full(N, inf), ValueError, "coef .* zero on every changeable feature"),
        ],
    },
}
LINEAR = "must be a fitted linear model, or a Pipeline that ends in one"
MODELS = [
    (None, TypeError, f"{LINEAR}; got None"),
    ("ridge", TypeError, f"{LINEAR}; got 'ridge'"),
    (coef, TypeError, f"{LINEAR}; got ndarray of shape"),
    (Ridge, TypeError, f"{LINEAR}; got the class Ridge"),
    (
        LogisticRegression().fit(X, np.arange(M) % 3),
        ValueError,
        f"{LINEAR}, for two classes; got a LogisticRegression with 3",
    ),
    (Ridge().fit(X, np.c_[y, y]), ValueError, f"{LINEAR}, with one output; got a Ridge with 2"),
]
WORLD = "must be one positive number, inf for honest providers, 'auto' or a Population"
WORLDS = [
    (value, error, f"{WORLD}; got {given}")
    for value, error, given in [
        (None, TypeError, "None"),
        ("automatic", TypeError, "'automatic'"),
        (True, TypeError, "True"),
        (1j, TypeError, "1j"),
        ([1.0], TypeError, "a list"),
        (np.ones(M), TypeError, "ndarray of shape"),
        (anything, TypeError, "an object"),
        (0.0, ValueError, "0.0"),
        (-1, ValueError, "-1"),
        (nan, ValueError, "nan"),
    ]
]
METRICS = [
    (value, error, f"must be the name of a scikit-learn scorer.*; got {given}")
    for value, error, given in [
        (None, TypeError, "None"),
        (1, TypeError, "1"),
        (nan, TypeError, "nan"),
        (max, TypeError, "a builtin_function_or_method"),
        ("mse", ValueError, "'mse'"),
        ("neg_log_loss", ValueError, "'neg_log_loss', which takes neither numbers nor scores"),
    ]
]
WANTED_GOAL = "must be None, a goal such as Floor.250., or a function of y"
GOAL_LIKE = [
    (value, TypeError, f"{WANTED_GOAL} that returns one number per row; got {given}")
    for value, given in [
        ("floor", "'floor'"),
        (250, "250"),
        (nan, "nan"),
        ([1.0], "a list"),
        (Floor, "the class Floor"),
    ]
]
LEVELS = [NO_NUMBER, *NUMBERS]
BAD |= {
    "predict_attacked": {
        "model": MODELS,
        "X": [*TABLES, (X[:, :2], ValueError, "must have 3 columns, as model was fitted; got 2")],
        "z": [(None, ValueError, "z is needed.*model holds no goal"), SCALAR, *ROWS],
        "y": LABELS_TOO,
        "gamma": [case for case in GAMMAS if case[0] is not AUTO],
        "budget": BUDGETS,
        "feature_cost": COSTS,
    },
    "make_attacked_scorer": {
        "gamma": WORLDS,
        "budget": BUDGETS,
        "share": [(0.5, ValueError, "must stay None without a budget; got 0.5.*Population")],
        "goal": GOAL_LIKE,
        "metric": METRICS,
        "feature_cost": [],  # checked against the columns of each model that is scored
    },
    "Shift": {"amount": LEVELS, "lower": NUMBERS, "upper": NUMBERS},
    "Scale": {"factor": LEVELS, "lower": NUMBERS, "upper": NUMBERS},
    "Floor": {"level": LEVELS},
    "Cap": {"level": LEVELS},
    "Constant": {"level": LEVELS},
}
CASES = [
    pytest.param(function, parameter, *case, id=f"{function}-{parameter}-{number}")
    for function, parameters in BAD.items()
    for parameter, cases in parameters.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_parameter_is_in_the_table(function):
    call, valid = FUNCTIONS[function]
    assert set(inspect.signature(call).parameters) == set(BAD[function])
    call(**valid)


@pytest.mark.parametrize(("function", "parameter", "value", "error", "message"), CASES)
def test_refused(function, parameter, value, error, message):
    call, valid = FUNCTIONS[function]
    with pytest.raises(error) as caught:
        call(**valid | {parameter: value})
    said = str(caught.value)
    assert type(caught.value) is error
    assert re.search(message, said), said
    reaches_nothing = "nothing to gain" in said
    assert re.match(rf"{'coef' if reaches_nothing else parameter}\b", said), said
    assert said.endswith(".")
    assert len(said) < 400
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ("Paris", "Encode text and categories"),
        (pd.Timestamp("2020-01-01"), "Turn dates and durations"),
        (pd.NA, "Drop or impute missing"),
        (anything, "Pass numbers only."),
        ((1.0, 2.0), "Pass numbers only."),
    ],
)
def test_text_is_spoken_of_only_where_there_is_text(entry, advice):
    values = np.empty(M, dtype=object)
    values[:] = list(y)
    values[2] = entry
    for parameter in ("y", "z"):
        with pytest.raises(TypeError, match=rf"^{parameter} must be .*entry 2 is") as caught:
            solve(**{"X": X, "y": y, "z": z, "gamma": 0.5} | {parameter: values})
        said = str(caught.value)
        assert advice in said
        assert ("OneHotEncoder" in said) == isinstance(entry, str)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[D]"])
def test_dates_are_not_called_text(kind):
    with pytest.raises(TypeError, match=r"entry 0 is .*\. Turn dates and durations"):
        solve(X, np.arange(M).astype(kind), z, 0.5)


@pytest.mark.parametrize("gamma", [inf, np.float64(inf), 10**400, [inf] * M, np.asarray(inf)])
def test_infinite_gamma_is_an_honest_provider(gamma):
    np.testing.assert_array_equal(best_response(X, z, coef, gamma=gamma), X)


@pytest.mark.parametrize(
    "gamma", [1, np.int8(1), np.float32(1), np.asarray(1.0), Fraction(1), np.uint64(1)]
)
def test_any_real_number_is_a_number(gamma):
    wanted = solve(X, y, z, 1.0).coef
    np.testing.assert_array_equal(solve(X, y, z, gamma).coef, wanted)
    np.testing.assert_array_equal(
        best_response(X, z, coef, gamma=gamma), best_response(X, z, coef, gamma=1.0)
    )


def test_masked_array_without_masked_entries_is_an_array():
    whole = np.ma.array(X, mask=False)
    np.testing.assert_array_equal(solve(whole, y, z, 1.0).coef, solve(X, y, z, 1.0).coef)


def test_numbers_whose_sum_overflows_are_finite():
    big = np.full((M, N), 1e308)
    move = movement(big, z, [1e-308] * N, gamma=1.0)
    np.testing.assert_allclose(move.before, 3.0)


def test_object_array_of_numbers_is_numbers():
    objects = X.astype(object)
    np.testing.assert_array_equal(solve(objects, y, z, 1.0).coef, solve(X, y, z, 1.0).coef)


@pytest.mark.parametrize("solver", ["auto", "spectral", Spectral(), Spectral(engine="qr")])
def test_solver_by_name_or_object(solver):
    assert solve(X, y, z, 1.0, solver=solver).solver == "spectral"


def test_unknown_engine():
    with pytest.raises(ValueError, match=r"^engine must be 'auto', 'gram' or 'qr'; got 'svd'\.$"):
        Spectral(engine="svd")


@pytest.mark.parametrize("shape", [(20, 4), (4, 4), (3, 8)], ids=["tall", "square", "wide"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_no_changeable_feature_is_least_squares(shape, fit_intercept, weighted, kind):
    m, n = shape
    rng = np.random.default_rng(m + n)
    A, b, goal = rng.normal(size=(m, n)), rng.normal(size=m), rng.normal(size=m)
    weight = rng.integers(0, 4, size=m) + 1.0 if weighted else np.ones(m)
    found = solve(
        kind(A),
        b,
        goal,
        0.7,
        fit_intercept=fit_intercept,
        feature_cost=np.full(n, inf),
        sample_weight=weight if weighted else None,
    )
    root = np.sqrt(weight)[:, None]
    columns = np.hstack([A, np.ones((m, 1))]) if fit_intercept else A
    wanted = np.linalg.lstsq(root * columns, root[:, 0] * b, rcond=None)[0]
    assert found.status is Status.LEAST_SQUARES
    assert found.alpha == 0.0
    assert found.pull == 0.0
    predicted = A @ found.coef + found.intercept
    np.testing.assert_allclose(predicted, columns @ wanted, rtol=0, atol=1e-12 * np.abs(b).max())
    loss = float(weight @ (columns @ wanted - b) ** 2)
    assert found.objective == pytest.approx(loss, rel=1e-10, abs=1e-20)
    if m > n:
        np.testing.assert_allclose(found.coef, wanted[:n], rtol=1e-10, atol=1e-12)
    intercept = found.intercept if fit_intercept else None
    proof = certify(
        kind(A),
        b,
        goal,
        0.7,
        found.coef,
        intercept=intercept,
        feature_cost=np.full(n, inf),
        sample_weight=weight if weighted else None,
    )
    assert proof.relative_gap < 1e-12


def test_strengths_that_overflow_in_good_units_are_refused():
    X, y = np.array([[1e5], [2e5], [-1e5]]), np.array([1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="gamma 1e\\+300 is out of range"):
        solve(X, y, y + 1.0, 1e300)
