"""
You do not know how strong people are
=====================================

Before a model is out nobody knows how far people will go. Give a range instead of a number. The fit
then has the smallest worst case over that range.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from spgls import Between, Floor, StackelbergRegressor, predict_attacked

X, y = load_diabetes(return_X_y=True)
goal = Floor(250)

# %%
# A pull of 0.2 means that people would close a fifth of the gap to their goal if you published
# least squares. We fit for weak people, for strong ones, and for everything in between, with the
# share of honest people open too.

models = {
    "pull 0.2": StackelbergRegressor(goal=goal, pull=0.2).fit(X, y),
    "pull 0.8": StackelbergRegressor(goal=goal, pull=0.8).fit(X, y),
    "0.2 to 0.8, 20% to 80% honest": StackelbergRegressor(
        goal=goal, pull=Between(0.2, 0.8), honest_share=Between(0.2, 0.8)
    ).fit(X, y),
}
ranged = models["0.2 to 0.8, 20% to 80% honest"]
print(*ranged.binding_, sep="\n")
print(ranged.status_.value, ranged.certificate_.kind)

# %%
# The error of each model against people of every strength in the range, at the worst honest share.

strong, weak = ranged.gamma_
gammas = np.geomspace(strong, weak, 40)
figure, ax = plt.subplots()
for name, model in models.items():
    honest = np.mean((model.predict(X) - y) ** 2)
    attacked = np.array(
        [np.mean((predict_attacked(model, X, goal(y), gamma=g) - y) ** 2) for g in gammas]
    )
    worst = np.maximum(0.2 * honest + 0.8 * attacked, 0.8 * honest + 0.2 * attacked)
    ax.plot(gammas, worst, label=f"{name} (worst {worst.max():.0f})")
ax.set(xscale="log", xlabel="gamma: strong people left, weak ones right")
ax.set_ylabel("mean squared error, worst honest share")
ax.legend()
figure.tight_layout()

# %%
# The highest point of a line is the worst that can happen with that model. Of all linear models the
# one for the range has the lowest highest point: that is what "proved" says.
