"""What a finished experiment leaves in its folder: CSV, Markdown, pictures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reproduction.environment import describe_environment
from reproduction.experiment import Experiment
from reproduction.figures import curves_figure, ratio_figure, times_figure
from reproduction.store import Results, write_whole
from reproduction.tables import (
    agreement_table,
    as_csv,
    curves_csv,
    error_table,
    real_time_table,
    time_table,
)
from reproduction.view import families

__all__ = ["NOTE", "draw", "figures_of", "markdown", "write_outputs"]

#: How to read the tables of times.
NOTE = (
    "Times are seconds, the mean over games. In brackets is the part of SOCP's time that the "
    "decomposition takes, with the products that it needs (eig). LTRSR, RTRNew and krylov never "
    "form the matrix H here; the paper prints the better of two variants, with H and without. `~` "
    "marks a time that was extrapolated from smaller sizes, `>` a time limit that was reached, `-` "
    "what was not run. In the figures the paper's times are dashed, and shades reach from the "
    "shortest to the longest time."
)


def write_outputs(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Write the tables and pictures of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Which one.
    results : Results
        Its finished cells.
    folder : Path
        Where the files go.

    Returns
    -------
    list of Path

    Raises
    ------
    ImportError
        There is no matplotlib; the tables are written.
    """
    table = curves_csv(results) if experiment.kind == "curves" else as_csv(results)
    tables = {f"{experiment.id}.csv": table, f"{experiment.id}.md": markdown(experiment, results)}
    for name, content in tables.items():
        write_whole(folder / name, content)
    # After the tables: they are there without matplotlib too.
    pictures = draw(experiment, results, figures_of(experiment))
    for name, picture in pictures.items():
        write_whole(folder / name, picture)
    return [folder / name for name in (*tables, *pictures)]


def figures_of(experiment: Experiment) -> tuple[str, ...]:
    """Names of its pictures."""
    if experiment.kind == "agreement":
        return ()
    if experiment.kind == "curves":
        return (f"{experiment.id}-attacked.png", f"{experiment.id}-honest.png")
    times = f"{experiment.id}.png"
    compared = {"socp", "ltrsr"} <= set(experiment.methods) and experiment.kind == "synthetic"
    return (times, f"{experiment.id}-ratios.png") if compared else (times,)


def draw(experiment: Experiment, results: Results, names: Iterable[str]) -> dict[str, bytes]:
    """Some of its pictures by name; none where nothing was measured."""
    if not any(record.measured for record in results.records):
        return {}
    drawn = {}
    for name in names:
        if experiment.kind == "curves":
            kind = name.removesuffix(".png").rpartition("-")[2]
            drawn[name] = curves_figure(results, kind)
        elif name.endswith("-ratios.png"):
            drawn[name] = ratio_figure(results, experiment.ratios)
        else:
            drawn[name] = times_figure(results, experiment.methods)
    return drawn


def markdown(experiment: Experiment, results: Results) -> str:
    """Tables in the paper's layout, with its numbers beside."""
    lines = [
        f"# {experiment.title}",
        "",
        f"{experiment.place}. The paper: {experiment.claim}",
        "",
        *(describe_environment(about) for about in results.environments.values()),
        "",
        body(experiment, results),
    ]
    lines += [f"![]({name})" for name in figures_of(experiment)]
    return "\n".join(lines) + "\n"


def body(experiment: Experiment, results: Results) -> str:
    """Return the tables of an experiment."""
    parts: list[str] = []
    if experiment.kind == "synthetic":
        parts.append(NOTE)
        for family in families(results):
            kind = "" if family.density is None else f", density {family.density:g}"
            parts += [f"{family.rows}{kind}", time_table(results, family)]
    elif experiment.kind == "real":
        for family in families(results):
            parts += [
                f"{family.attacker} attacker, seconds by rows",
                real_time_table(results, family, experiment.methods),
            ]
    elif experiment.kind == "agreement":
        parts += [
            "Objective above the least one, in units of |y|^2.",
            agreement_table(results, experiment.methods),
        ]
    else:
        parts.append("Every number is in the CSV file.")
    if experiment.kind in ("synthetic", "real"):
        parts += ["Relative difference of objectives from SOCP's", error_table(results)]
    if experiment.kind == "real":
        parts += [
            "Relative difference of errors on test rows from SOCP's",
            error_table(results, "test_mse"),
        ]
    return "\n\n".join(parts)
