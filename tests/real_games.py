"""The three small real sets by the protocol of the 2022 paper, where SPGLS_DATA holds them.

A column of ones that providers can change, features scaled to [0, 1], gamma 0.1, and the modest and
the severe attacker of each set.
"""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from .catalogue import REAL, scaled_with_ones

FOLDER = os.environ.get("SPGLS_DATA")
Game = tuple[np.ndarray, np.ndarray, np.ndarray, float]


def games() -> dict[str, Game]:
    """The games by name; none without the folder."""
    if not FOLDER:
        return {}
    found = {name: build(None, folder=Path(FOLDER)) for name, build in REAL.items()}
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
    X, y, _, _ = REAL["wine-modest"](None, folder=Path(FOLDER))
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
