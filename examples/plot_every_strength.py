"""
Every strength at once
======================

One reading of the data solves the game for a hundred strengths. The picture shows what the model
relies on as people get weaker.
"""

import numpy as np
from sklearn.datasets import load_diabetes

from spgls import Floor, Population, solve_path
from spgls.display import PathDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
z = Floor(250)(y)
people = [Population.mixed(gamma, honest=0.5) for gamma in np.geomspace(1e4, 1e8, 100)]
path = solve_path(X, y, z, people, fit_intercept=True)
print(f"{len(path)} games, {path.stats.passes:.0f} pass over the data")
print({status.value for status in path.status})

# %%
# Strong people are on the left. They can change every feature, so there all coefficients are small.
# On the right people are weak, and the model becomes least squares.

PathDisplay.from_path(path, X, y, z, gamma=2e6).plot(metric="r2")
