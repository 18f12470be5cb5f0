"""
Insurance: what people do, and which field to check
===================================================

People state who they are and pay what their treatment is expected to cost. They would like to pay
at most 5000 dollars. Checking a field costs money; which check is worth it?
"""

import numpy as np
from sklearn.preprocessing import StandardScaler

from spgls import Actions, Cap, StackelbergRegressor
from spgls.datasets import load_insurance
from spgls.display import LeversDisplay

# %%
# Labels are in hundreds of dollars, so the goal is 50.

insured = load_insurance(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(insured.X)
y, goal = insured.y, Cap(50.0)
model = StackelbergRegressor(goal=goal).fit(X, y)
fields = ["age", "sex", "bmi", "children", "smoker", "region"]
found = model.levers(X, y, groups=fields)
print(found.answer)

# %%
# Each mark is the error of the best model once a field is checked, left out, or twice as expensive
# to change.

LeversDisplay.from_levers(found).plot()

# %%
# Check who smokes, and ask again: what to check second depends on what was checked first.

checked = StackelbergRegressor(float(model.gamma_), goal=goal, feature_cost={"smoker": np.inf}).fit(
    X, y
)
print(checked.levers(X, y, groups=fields, kinds="verify").answer)

# %%
# So far every feature could be changed by itself. In truth people take actions. Sport lowers the
# body mass index. A weighing scale that shows too little does so at a lower cost. A lie about
# smoking changes two columns at once.

actions = Actions(
    {
        "sport": {"bmi": -1.0},
        "scale": {"bmi": -1.0},
        "lie": {"smoker_yes": -1.0, "smoker_no": 1.0},
    },
    cost={"sport": 4.0, "scale": 1.0, "lie": 400.0},
)
real = StackelbergRegressor(gamma=20.0, goal=goal, feature_cost=actions).fit(insured.X, y)
print(real.summary(insured.X, y))
