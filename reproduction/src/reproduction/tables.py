"""Results as tables: CSV with every cell, Markdown in the paper's layout beside its numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from statistics import fmean, median_high

from reproduction import paper
from reproduction.cell import Family, Real, Synthetic
from reproduction.measure import CURVES
from reproduction.store import Results
from reproduction.view import Law, Point, families, law_of, pairs, points

__all__ = [
    "LABELS",
    "agreement_table",
    "as_csv",
    "curves_csv",
    "error_table",
    "markdown_table",
    "number",
    "real_time_table",
    "time_table",
    "tolerance",
]

LABELS = {
    "socp": "SOCP",
    "sdp": "SDP",
    "ltrsr": "LTRSR",
    "rtr-newton": "RTRNew",
    "krylov": "krylov",
    "spectral": "spectral",
    "gltr": "GLTR",
    "bisection": "bisection",
}
#: What two objectives may differ by: methods by cone solvers, and all others.
CONIC = ("bisection", "sdp", "socp")
CONIC_TOLERANCE, TOLERANCE = 1e-6, 1e-9

#: Times, errors and ratios below this are rounding.
TINY = 1e-15
#: A law says nothing of sizes this many times beyond those it was fitted to.
REACH = 8

_COLUMNS = ("experiment", "source", "m", "n", "density", "attacker", "protocol", "rows", "seed")
_VALUES = ("first", "objective", "labels", "gap", "kind", "status", "passes", "iterations", "alpha")
_MORE = ("test_mse", "peak_mib", "reason", "limit")


def number(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return "-"
    size = abs(value)
    if size < TINY:
        return "0"
    if size >= 100.0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size >= 1e-3 else f"{value:.1e}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under a header; all columns but the first are numbers."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("| --- |" + " ---: |" * (len(header) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def as_csv(results: Results) -> str:
    """Return one line for each cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = (*_COLUMNS, "method", "gamma", "outcome", "seconds", "decomposition")
    writer.writerow((*names, *_VALUES, *_MORE))
    for record in results.records:
        cell, times = record.cell, record["seconds"]
        writer.writerow(
            (
                cell.experiment,
                *(getattr(cell.data, name, None) for name in _COLUMNS[1:]),
                cell.method,
                cell.gamma,
                record.outcome,
                f"{median_high(times):.4g}" if times else None,
                (record["stages"] or {}).get("reduction"),
                *(record[name] for name in (*_VALUES, *_MORE)),
            )
        )
    return text.getvalue()


def curves_csv(results: Results) -> str:
    """Return one line for each set, attacker, fold, model and strength."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("source", "attacker", "fold", "model", "gamma", "attacked_mse", "honest_mse"))
    for record in results.where(method=CURVES).records:
        data = record.cell.data
        if not (isinstance(data, Real) and record.measured):
            continue
        for model, found in record["errors"].items():
            honest = found.get("honest", [None] * len(record["gammas"]))
            for row in zip(record["gammas"], found["attacked"], honest, strict=True):
                writer.writerow((data.source, data.attacker, data.seed, model, *row))
    return text.getvalue()


def _time(point: Point | None, law: Law | None, order: int) -> tuple[str, float | None]:
    """Text of a time, and the time: measured, or extrapolated and marked so."""
    if point is not None and point.seconds is not None:
        return number(point.seconds), point.seconds
    trouble = "" if point is None else f"{point.trouble}; "
    if law is None or order > REACH * law.high:
        return trouble.removesuffix("; ") or "-", None
    return f"{trouble}~{number(law(order))}", law(order)


def time_table(results: Results, family: Family) -> str:
    """Times of a family of synthetic games, ours and the paper's."""
    known = {
        row.n: row for row in paper.TIMES.get((family.density, family.ratio, family.gamma), ())
    }
    ours = {
        method: {point.size: point for point in points(results, family, method)}
        for method in ("socp", "rtr-newton", "ltrsr", "krylov")
    }
    laws = {method: law_of(results, family, method) for method in ours}
    sizes = sorted({size for found in ours.values() for size in found} | set(known))
    rows = []
    for n in sizes:
        m = round(family.ratio * n)
        order = min(m, n)
        cells = {method: _time(found.get(n), laws[method], order) for method, found in ours.items()}
        socp, ltrsr = cells["socp"][1], cells["ltrsr"][1]
        guess = "~" if "~" in cells["socp"][0] + cells["ltrsr"][0] else ""
        point = ours["socp"].get(n)
        eig = None if point is None else point.decomposition
        share = f" ({number(eig)})" if eig is not None else ""
        theirs = known.get(n)
        rows.append(
            [
                f"{m:,} x {n:,}",
                cells["socp"][0] + share,
                "-" if theirs is None else f"{number(theirs.socp)} ({number(theirs.eig)})",
                cells["rtr-newton"][0],
                number(theirs and theirs.rtr_newton),
                cells["ltrsr"][0],
                number(theirs and theirs.ltrsr),
                cells["krylov"][0],
                f"{guess}{number(socp / ltrsr)}" if socp and ltrsr else "-",
                number(theirs and float(theirs.ratio)),
            ]
        )
    header = ["m x n"]
    for label in ("SOCP (eig)", "RTRNew", "LTRSR"):
        header += [label, "paper"]
    return markdown_table([*header, "krylov", "SOCP/LTRSR", "paper"], rows)


def real_time_table(results: Results, family: Family, methods: Sequence[str]) -> str:
    """Times on a real set, by rows; the paper shows them as a figure only."""
    ours = {
        method: {point.size: point for point in points(results, family, method)}
        for method in methods
    }
    sizes = sorted({size for found in ours.values() for size in found})
    rows = [
        [f"{size:,}", *(_time(found.get(size), None, size)[0] for found in ours.values())]
        for size in sizes
    ]
    return markdown_table(["rows", *(LABELS[method] for method in methods)], rows)


def error_table(results: Results, value: str = "objective") -> str:
    """Relative differences from SOCP, (SOCP - method)/|SOCP|, as the paper has them."""
    rows = []
    for family in families(results):
        row = [_family_name(family)]
        theirs = _printed(family, value)
        for at, method in enumerate(("ltrsr", "rtr-newton", "krylov")):
            found = [
                (socp[value] - other[value]) / abs(socp[value])
                for socp, other in pairs(results, family, "socp", method)
                if socp[value] and other[value] is not None
            ]
            spread = (fmean(found), min(found), max(found)) if found else None
            row.append(" / ".join(map(_error, spread)) if spread else "-")
            if at < 2:
                row.append(" / ".join(map(_error, theirs[at])) if theirs else "-")
        rows.append(row)
    header = ["mean / least / largest", "LTRSR", "paper", "RTRNew", "paper", "krylov"]
    return markdown_table(header, rows)


def _error(value: float) -> str:
    return "0" if value == 0.0 else f"{value:.1e}"


def _printed(family: Family, value: str) -> tuple[paper.Spread, paper.Spread] | None:
    if family.attacker:
        table = paper.OBJECTIVE_ERRORS if value == "objective" else paper.TEST_ERRORS
        return table.get((family.source, family.attacker))
    return paper.SYNTHETIC_ERRORS.get((family.density, family.ratio, family.gamma))


def _family_name(family: Family) -> str:
    if family.attacker:
        return f"{family.source} {family.attacker}"
    kind = "dense" if family.density is None else f"density {family.density:g}"
    return f"{kind}, {family.rows}, gamma {family.gamma:g}"


def agreement_table(results: Results, methods: Sequence[str]) -> str:
    """Objective above the least, in units of |y|^2, or why there is none."""
    rows = []
    for data in dict.fromkeys(record.cell.data for record in results.records):
        assert not isinstance(data, Synthetic)
        found = {record.cell.method: record for record in results.where(data=data).records}
        least = min((r["objective"] for r in found.values() if r.measured), default=None)
        row = [f"{data.source} {data.attacker} {data.protocol}"]
        for method in methods:
            record = found.get(method)
            if record is None:
                row.append("-")
            elif record.measured and least is not None:
                mark = " *" if record["status"] == "inaccurate" else ""
                row.append(_error((record["objective"] - least) / record["labels"]) + mark)
            else:
                row.append(Point(0, 0, (record,)).trouble)
        rows.append([*row, number(least)])
    return markdown_table(["game", *(LABELS[m] for m in methods), "objective"], rows)


def tolerance(method: str) -> float:
    """What its objective may differ by, in units of |y|^2."""
    return CONIC_TOLERANCE if method in CONIC else TOLERANCE
