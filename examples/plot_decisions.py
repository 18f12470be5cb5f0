"""
Yes or no: a classifier
=======================

Most people meet manipulation where a decision is made. Here everyone would like to be told
"benign".
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from spgls import StackelbergClassifier, Wants, predict_attacked
from spgls.display import DecisionRobustnessDisplay

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X), np.array(["malignant", "benign"])[y]
train, test = slice(0, None, 2), slice(1, None, 2)
goal = Wants("benign")

models = {
    "logistic": LogisticRegression().fit(X[train], y[train]),
    "spgls": StackelbergClassifier(goal=goal).fit(X[train], y[train]),
    "spgls, shifted": StackelbergClassifier(goal=goal, threshold="attacked").fit(
        X[train], y[train]
    ),
}

# %%
# People can react in two ways. In the *game's response* they close a share of the gap between their
# score and the one they want. In the *boundary response* they move just across the boundary, if
# that costs less than the decision is worth to them: their budget.

worlds = {"game": {"gamma": "auto"}, "budget 0.5": {"budget": 0.5}, "budget 2": {"budget": 2.0}}
print(f"{'right decisions':18}{'honest':>8}" + "".join(f"{name:>12}" for name in worlds))
for name, model in models.items():
    kept = [np.mean(model.predict(X[test]) == y[test])]
    for world in worlds.values():
        moved = predict_attacked(model, X[test], goal, **world)
        kept += [np.mean(moved == y[test])]
    print(f"{name:18}{kept[0]:8.2f}" + "".join(f"{share:12.2f}" for share in kept[1:]))

# %%
# The game is solved for its own response, and for squared errors of scores. Against people who
# only cross the boundary, logistic regression decides better here. So compare, and take the model
# that decides best where you expect to be.

DecisionRobustnessDisplay.from_estimators(models, X[test], y[test], goal).plot()
