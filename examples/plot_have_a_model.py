"""
Do I have a problem?
====================

You have a model already. Would it suffer if people reacted to it? Ask before you change anything.
"""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, RidgeCV

from spgls import Floor, StackelbergRegressor, robustness
from spgls.display import RobustnessDisplay

# %%
# Patients are scored by how far their disease has progressed. Suppose that everyone would like a
# score of at least 250, say because treatment begins there.

X, y = load_diabetes(return_X_y=True, as_frame=True)
goal = Floor(250)
models = {
    "least squares": LinearRegression().fit(X, y),
    "ridge": RidgeCV([0.01, 0.1, 1.0]).fit(X, y),
}
found = robustness(models, X, y, goal(y))
print(found.thresholds(loss=0.1))

# %%
# A small share of people is enough to cost least squares a tenth of its accuracy. So the question
# is worth an answer: fit a model that expects half of the people to react.

models["spgls"] = StackelbergRegressor(goal=goal).fit(X, y)
for name, model in models.items():
    print(f"{name:14} R2 where nobody reacts: {model.score(X, y):.2f}")

RobustnessDisplay.from_estimators(models, X, y).plot()

# %%
# Left: nobody reacts. Right: everybody does. The model that expects reactions gives up a little on
# the left and stays nearly flat.
