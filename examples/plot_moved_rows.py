"""
Rows that an older model has moved
==================================

Last year's rows were sent by people who knew last year's model. Fitting to them as they are fits
the manipulation. Undo it first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from spgls import Floor, best_response, undo_response

X, y = load_diabetes(return_X_y=True)
z, gamma = Floor(250)(y), 2e6
older = LinearRegression().fit(X, y)
arrived = best_response(X, z, older, gamma=gamma)

# %%
# When the model that people reacted to is known, so is what they did.

clean = undo_response(arrived, z, older.coef_, gamma=gamma, intercept=older.intercept_)
print(f"largest difference from the true rows: {np.abs(clean - X).max():.0e}")

# %%
# Three fits, judged on rows that nobody moved.

fits = {"true rows": X, "as they arrived": arrived, "undone": clean}
errors = {
    name: np.mean((LinearRegression().fit(rows, y).predict(X) - y) ** 2)
    for name, rows in fits.items()
}
figure, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(errors), list(errors.values()))
ax.set_xlabel("mean squared error on rows that nobody moved")
figure.tight_layout()
