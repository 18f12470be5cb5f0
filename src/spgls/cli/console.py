"""What the command line says, and how it ends: one sentence and a code, never a traceback."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rich.console import Console
from typer.core import TyperGroup

__all__ = ["Commands", "Trouble", "gathered_warnings", "say", "working"]

#: Seconds that work may take in silence.
_PATIENCE = 1.0


class Trouble(Exception):
    """Something that the user can put right; its text is one sentence."""


class _Terminated(BaseException):
    """Somebody asked the process to end."""


class Commands(TyperGroup):
    """A group of commands that ends with a sentence and a code, whatever happens."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line.

        Parameters
        ----------
        *args, **options
            As typer passes them.
        """
        _listen()
        alone = options.pop("standalone_mode", True)
        try:
            with _quiet_libraries():
                code = super().main(*args, **options | {"standalone_mode": False})
        except KeyboardInterrupt:
            _end("Interrupted. Nothing was left half-written.", 128 + signal.SIGINT)
        except _Terminated:
            _end("Terminated. Nothing was left half-written.", 128 + signal.SIGTERM)
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            with suppress(OSError):
                sys.stdout.close()
            sys.exit(141)
        except Exception as error:
            _end(_sentence(error), getattr(error, "exit_code", 2))
        if isinstance(code, int) and code == 128 + signal.SIGINT:
            # typer turns Ctrl-C into a code of its own.
            _end("Interrupted. Nothing was left half-written.", code)
        if alone:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _end(sentence: str, code: int) -> NoReturn:
    say(sentence, error=True)
    sys.exit(code)


def _sentence(error: Exception) -> str:
    """What went wrong, on one line."""
    said: str
    if hasattr(error, "format_message"):
        said = str(error.format_message())
        usage = getattr(error, "ctx", None)
        if usage is not None:
            said = f"{said.rstrip('.')}. See '{usage.command_path} --help'."
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        said = f"{where}{error.strerror}."
    elif isinstance(error, MemoryError):
        said = f"There is not enough memory for this: {error or 'the table is too large'}."
    else:
        said = str(error) or type(error).__name__
        expected = (Trouble, ValueError, TypeError, ImportError, OSError)
        if not isinstance(error, expected):
            said = f"{type(error).__name__}: {said} This is a defect of spgls; please report it."
    printable = "".join(c if c.isprintable() else " " for c in said)
    return " ".join(printable.split())


def _listen() -> None:
    """End in order when somebody asks the process to."""

    def stop(*_: object) -> None:
        raise _Terminated

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Warnings are told where they belong; those of libraries are not for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Collect what a fit warns of, to be told with its result."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield told
        finally:
            seen = (" ".join(str(one.message).split()) for one in caught)
            told += list(dict.fromkeys(seen))


def say(text: str, *, error: bool = False) -> None:
    """Print words as they are: a path may hold brackets, and must stay on one line.

    Parameters
    ----------
    text : str
        What to say.
    error : bool
        Whether to say it on the error stream.
    """
    Console(stderr=error).print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show on a terminal what takes longer than a second; elsewhere nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(on)
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
