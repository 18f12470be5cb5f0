"""From which pull, strength and strategic share on manipulation costs a model too much."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np

from spgls.base.frames import data_frame
from spgls.base.types import Array, Vector

__all__ = ["METRICS", "Thresholds", "percent", "wrapped"]

METRICS = {"r2": "R2", "mse": "mean squared error", "rmse": "root mean squared error"}


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds:
    """Where models have lost a given part of their accuracy; NaN where they never do.

    What :meth:`Robustness.thresholds` returns.

    Attributes
    ----------
    models, gammas : tuple of k str, ndarray of shape (g,)
        Names of the models, and strengths of the strategic providers.
    loss, metric : float, {"r2", "mse", "rmse"}
        The part that is lost: of the honest R2, or by which the error grows.
    level : ndarray of shape (k,)
        Mean squared errors at which that is lost; NaN for a model whose honest R2 is not positive.
    pull, gamma : ndarray of shape (k,)
        Smallest share of their gaps that providers close when that is lost, where all of them
        react, and the strength at which they close it.
    share : ndarray of shape (k, g)
        Smallest strategic share at which that is lost, at each strength.
    """

    models: tuple[str, ...]
    gammas: Vector
    loss: float
    metric: str
    level: Vector
    pull: Vector
    gamma: Vector
    share: Array

    @property
    def lost(self) -> str:
        """What happens there, in words."""
        part = f"{100.0 * self.loss:.3g}%"
        return f"loses {part} of its R2" if self.metric == "r2" else f"errs {part} more"

    def sentence(self, model: int) -> str:
        """From where on manipulation hurts one of the models, in words.

        Parameters
        ----------
        model : int
            Its place among the models.

        Returns
        -------
        str
        """
        pull, gamma, shares = self.pull[model], self.gamma[model], self.share[model]
        if np.isnan(self.level[model]):
            return "It has no R2 to lose."
        if np.isnan(pull):
            never = f"never {self.lost}".replace("loses", "lose").replace("errs", "err")
            return f"It would {never}, however strong providers are."
        once = f"It {self.lost} once all providers close {percent(pull)} of their gaps"
        if np.isnan(shares).all():
            return f"{once}, which needs a gamma of {gamma:.3g}, stronger than any given."
        at = int(np.nanargmin(shares))
        return (
            f"{once} (gamma {gamma:.3g}), or once {percent(shares[at])} of them react with gamma "
            f"{self.gammas[at]:.3g}."
        )

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of a table, one row per model and strength."""
        i, g = np.indices(self.share.shape).reshape(2, -1)
        return {
            "model": [self.models[at] for at in i],
            "pull_from": self.pull[i].tolist(),
            "gamma_from": self.gamma[i].tolist(),
            "gamma": self.gammas[g].tolist(),
            "share_from": self.share.ravel().tolist(),
        }

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return data_frame(self.to_dict())

    def __repr__(self) -> str:
        return "\n".join(
            wrapped(f"{name}: {self.sentence(at)}") for at, name in enumerate(self.models)
        )


def percent(share: float) -> str:
    """A share in words."""
    return f"{100.0 * share:.2g}%"


def wrapped(text: str) -> str:
    """A paragraph that fits a terminal."""
    return fill(text, 100, subsequent_indent="  ")
