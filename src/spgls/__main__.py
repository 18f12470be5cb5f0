"""Run the command line with ``spgls`` or ``python -m spgls``."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from spgls.cli import app
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"The command line needs {error.name}: install it with pip install 'spgls[all]'."
        ) from None
    app()


if __name__ == "__main__":
    main()
