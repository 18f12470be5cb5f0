"""
How strong are people? Ask their rows
=====================================

Some rows were seen twice: before people knew the model, and after. The difference tells how
expensive changes are to them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from spgls import Floor, best_response, estimate_gamma

X, y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
model = LinearRegression().fit(X, y)
z = Floor(250)(y)

# %%
# We play the people ourselves, with a strength that the estimate does not know, and add some noise
# to what arrives.

truth = 3000.0
rng = np.random.default_rng(0)
after = best_response(X, z, model, gamma=truth) + rng.normal(0, 0.02, X.shape)
found = estimate_gamma(X, after, z, model.coef_, intercept=model.intercept_)
print(found)

# %%
# How many rows does it take? The bars are 95% intervals.

sizes = [10, 20, 50, 100, 200, 442]
estimates = [
    estimate_gamma(X[:m], after[:m], z[:m], model.coef_, intercept=model.intercept_) for m in sizes
]
low, high = np.transpose([each.interval for each in estimates])
middle = np.array([each.gamma for each in estimates])
figure, ax = plt.subplots()
ax.errorbar(sizes, middle, yerr=[middle - low, high - middle], fmt="o", capsize=4)
ax.axhline(truth, linestyle="--", color="grey", label="the strength people were given")
ax.set(xscale="log", xlabel="rows seen before and after", ylabel="estimated gamma")
ax.legend()
figure.tight_layout()
