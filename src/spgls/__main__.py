"""Run the command line with ``spgls`` or ``python -m spgls``."""

from __future__ import annotations

__all__ = ["main"]

#: What the extra ``cli`` holds.
_EXTRA = ("typer", "rich")


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from spgls.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise SystemExit(
            f"The command line needs {package}. Install it with: pip install 'spgls[cli,plot]'"
        ) from None
    app(prog_name="spgls")


if __name__ == "__main__":
    main()
