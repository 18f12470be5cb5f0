"""The process that measures: it reads cells as lines, answers in lines, and may be killed.

It is run as ``python -m reproduction.worker module:function``. The function takes a cell as
plain values, and a callable to call once the game is there and the clock may start.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib import import_module
from queue import SimpleQueue
from typing import Any

from reproduction.cell import UnavailableError

__all__ = ["serve"]


def serve(target: str) -> None:
    """Answer requests until there are no more."""
    # Libraries that print must not print into the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    module, _, name = target.partition(":")
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    measure = getattr(import_module(module), name)

    def tell(event: str, **more: Any) -> None:
        answers.write(json.dumps({"event": event, **more}) + "\n")

    tell("ready")
    while True:
        request = json.loads(requests.get())
        try:
            outcome, values = measure(request, lambda: tell("started"))
        except UnavailableError as error:
            tell("unavailable", need=error.need, reason=str(error))
        except MemoryError:
            tell("done", outcome="memory", values={})
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            tell("done", outcome="failed", values={"reason": reason})
        else:
            tell("done", outcome=outcome, values=values)


def _listen(requests: SimpleQueue[str]) -> None:
    """Pass requests on; once nobody can ask any more, end, in the middle of a cell too."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
