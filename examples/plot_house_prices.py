"""
House prices, and what a seller can dress up
============================================

Sellers fill in a form, and a model proposes a price. The size of a house is on record, a coat of
paint is not. The data is generated here, so that we know what the truth is.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from spgls import Floor, StackelbergRegressor, predict_attacked
from spgls.display import CoefficientDisplay, MovementDisplay

# %%
# Eight hundred houses. Prices are in thousands.

rng = np.random.default_rng(0)
size = rng.normal(120, 30, 800)
condition = rng.uniform(1, 10, 800)
houses = pd.DataFrame(
    {
        "size": size,
        "rooms": np.round(size / 28 + rng.normal(0, 0.7, 800)),
        "age": rng.uniform(0, 80, 800),
        "distance": rng.exponential(6, 800),
        "condition": condition,
        "kitchen": np.round(condition / 2 + rng.normal(0, 1.5, 800)),
        "view": rng.integers(0, 5, 800),
    }
)
value = 1.9 * houses["size"] + 9 * houses["condition"] + 6 * houses["kitchen"] + 12 * houses["view"]
price = value - 0.8 * houses["age"] - 3 * houses["distance"] + rng.normal(0, 25, 800)

X = StandardScaler().set_output(transform="pandas").fit_transform(houses)
train, test = slice(0, 500), slice(500, None)

# %%
# Sellers would like the price of the best tenth of houses, or more. Size, age and distance can be
# looked up, so nobody can change them. The number of rooms can be overstated, at four times
# the cost of other features.

goal = Floor(np.quantile(price, 0.9))
cost = {"size": np.inf, "age": np.inf, "distance": np.inf, "rooms": 4.0}
plain = LinearRegression().fit(X[train], price[train])
game = StackelbergRegressor(goal=goal, feature_cost=cost).fit(X[train], price[train])


def r2(predicted):
    return 1 - np.mean((predicted - price[test]) ** 2) / np.var(price[test])


print(f"{'R2 on houses not seen':22}{'honest':>8}{'attacked':>10}")
for name, model in {"least squares": plain, "spgls": game}.items():
    moved = predict_attacked(
        model, X[test], goal(price[test]), gamma=game.gamma_, feature_cost=cost
    )
    print(f"{name:22}{r2(model.predict(X[test])):8.2f}{r2(moved):10.2f}")

# %%
# What changed: the model relies less on what can be dressed up.

CoefficientDisplay.from_estimators([plain, game], X).plot()

# %%
# What sellers would still do. A standard deviation of condition is about two and a half points.

MovementDisplay.from_estimator(game, X[test], goal(price[test])).plot()
