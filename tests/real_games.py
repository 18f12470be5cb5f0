"""The three small real sets by the protocol of the 2022 paper, where SPGLS_DATA holds them.

A column of ones that providers can change, features scaled to [0, 1], gamma 0.1, and the modest and
the severe attacker of each set.
"""

from __future__ import annotations

import csv
import os
import re
import zipfile
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

FOLDER = os.environ.get("SPGLS_DATA")
Game = tuple[np.ndarray, np.ndarray, np.ndarray, float]


def scaled_with_ones(columns: list[np.ndarray]) -> np.ndarray:
    X = np.column_stack(columns)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return np.c_[X, np.ones(len(X))]


def wine(folder: Path, goal: float):
    with (folder / "winequality-red.csv").open(newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))[1:]
    table = np.array(rows, dtype=float)
    y = table[:, -1]
    return scaled_with_ones(list(table[:, :-1].T)), y, np.maximum(y, goal), 0.1


def insurance(folder: Path, discount: float):
    with (folder / "insurance.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [np.array([float(row[key]) for row in rows]) for key in ("age", "bmi", "children")]
    for key in ("sex", "smoker", "region"):
        kinds = sorted({row[key] for row in rows})
        columns += [np.array([float(row[key] == kind) for row in rows]) for kind in kinds]
    charges = np.array([float(row["charges"]) for row in rows])
    z = np.maximum(charges - discount, 0.0) / 100.0
    return scaled_with_ones(columns), charges / 100.0, z, 0.1


REAL = {
    "wine-modest": partial(wine, goal=6.0),
    "wine-severe": partial(wine, goal=7.0),
    "insurance-modest": partial(insurance, discount=100.0),
    "insurance-severe": partial(insurance, discount=300.0),
}


def games() -> dict[str, Game]:
    """The games by name; none without the folder."""
    if not FOLDER:
        return {}
    found = {name: build(Path(FOLDER)) for name, build in REAL.items()}
    table = numbers(Path(FOLDER) / "Residential-Building-Data-Set.xlsx")
    X, price = table[:, :107], table[:, 107]
    unit = 0.01 * np.abs(price).max()
    features = scaled_with_ones([column for column in X.T if np.ptp(column) > 0.0])
    for name, shift in (("building-modest", 20.0), ("building-severe", 40.0)):
        found[name] = features, price / unit, np.maximum(price + shift, 0.0) / unit, 0.1
    return found


def red_wine() -> tuple[np.ndarray, np.ndarray]:
    """Features scaled to [0, 1], without the column of ones, and labels; skips without the file."""
    if not FOLDER or not (Path(FOLDER) / "winequality-red.csv").exists():
        pytest.skip("set SPGLS_DATA to the folder that holds winequality-red.csv")
    X, y, _, _ = REAL["wine-modest"](Path(FOLDER))
    return X[:, :-1], y


def numbers(file: Path) -> np.ndarray:
    """Cells of the first sheet of a workbook below its two header rows."""
    tag = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(file) as workbook, workbook.open("xl/worksheets/sheet1.xml") as sheet:
        rows = []
        for row in ElementTree.parse(sheet).getroot().iter(f"{tag}row"):
            cells = {
                re.sub(r"\d", "", cell.get("r")): cell.findtext(f"{tag}v")
                for cell in row.iter(f"{tag}c")
            }
            rows.append(cells)
    columns = sorted(rows[2], key=lambda name: (len(name), name))
    return np.array([[float(row[name]) for name in columns] for row in rows[2:] if row])
