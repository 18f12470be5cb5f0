"""
Red wine: honest and strategic producers
========================================

Producers send measurements and get a mark. Some adjust the wine to the model, some do not. How many
do decides which model is best.
"""

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from spgls import Population, solve, solve_path
from spgls.datasets import load_wine_quality
from spgls.display import TradeoffDisplay

wine = load_wine_quality(as_frame=True)
X, y = MinMaxScaler().fit_transform(wine.X), wine.y.to_numpy()
z = np.maximum(y, 6.0)

# %%
# One game for each share of strategic producers, all from one reading of the data.

shares = np.r_[np.linspace(0, 0.98, 50), 0.99, 0.995, 0.999, 1.0]
people = [Population.mixed(50.0, honest=1 - share) for share in shares]
path = solve_path(X, y, z, people, fit_intercept=True)
TradeoffDisplay.from_path(path, X, y, z).plot(marker="")

# %%
# On the far right everyone is expected to react. Such a model infers the mark from how far the
# producer moved, and is useless for anyone who did not move. A small honest share mends that.

# Groups of different strength are a population too, with honest people among them.
mixed = Population([np.inf, 20.0, 200.0], [0.5, 0.2, 0.3])
solution = solve(X, y, z, mixed, fit_intercept=True)
print(mixed)
print(solution.status.value, solution.certificate.kind)
print("share of the gap that each group closes:", (solution.alpha / (1 + solution.alpha)).round(2))
