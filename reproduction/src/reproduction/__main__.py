"""Run the experiments with ``python -m reproduction``."""

from __future__ import annotations

from reproduction.command import app

if __name__ == "__main__":
    app(prog_name="python -m reproduction")
