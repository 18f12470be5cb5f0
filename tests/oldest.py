"""The lowest versions that pyproject.toml declares, as constraints for ``make test-oldest``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

#: What the oldest packages warn of in the newest of their own dependencies.
TOO_NEW = ["pyparsing<3.3"]  # matplotlib


def constraints() -> list[str]:
    """``numpy==1.26`` for ``numpy>=1.26``, of dependencies, extras and the tests' own needs."""
    about = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    project = about["project"]
    declared = [project["dependencies"], about["dependency-groups"]["test"]]
    declared += project["optional-dependencies"].values()
    lowest = {line.replace(">=", "==") for lines in declared for line in lines if ">=" in line}
    return TOO_NEW + sorted(re.sub(r",.*", "", line) for line in lowest)


if __name__ == "__main__":
    print("\n".join(constraints()))
