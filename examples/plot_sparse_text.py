"""
Words in messages: a large sparse problem
=========================================

Twenty thousand messages, thirty thousand words, almost all counts zero. Senders would like a lower
score and can add or leave out any word. Nothing here is ever dense.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from spgls import Cap, Population, explain_solver, movement, solve

# %%
# Words occur as in real texts: few of them often, most of them rarely. Counts are generated and
# scaled to unit length, as tf-idf would.

rng = np.random.default_rng(0)
messages, words, length = 20_000, 30_000, 60
frequency = 1 / np.arange(1, words + 1)
column = rng.choice(words, size=messages * length, p=frequency / frequency.sum())
row = np.repeat(np.arange(messages), length)
X = sp.csr_array((np.ones(row.size), (row, column)), shape=(messages, words))
X.sum_duplicates()
X = sp.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
effect = np.where(rng.random(words) < 0.1, rng.normal(0, 3.0, words), 0.0)
y = X @ effect + rng.normal(0, 0.5, messages)
z = Cap(-0.5)(y)
print(f"{X.nnz / np.prod(X.shape):.2%} of the counts are not zero")

# %%
# "auto" chooses the solver from the sizes, and can say why.

people = Population.mixed(20.0, honest=0.5)
print(explain_solver(X, fit_intercept=True))
solution = solve(X, y, z, people, fit_intercept=True, tol=1e-6, ridge=1.0)
print(solution.status.value, solution.solver, f"{solution.stats.passes:.0f} passes over the data")
print(f"proved to be within {solution.certificate.relative_gap:.0e} of the best possible")

# %%
# What senders would do, without a dense copy of the rows: one direction, one step each.

move = movement(X, z, solution.coef, gamma=20.0, intercept=solution.intercept)
print(move)

# %%
# All strategic senders want a score of -0.5 or less, so scores move to the left.

bins = np.linspace(-3, 3, 61)
plt.hist(move.before, bins, histtype="step", label="honest messages")
plt.hist(move.after, bins, histtype="step", label="attacked messages")
plt.xlabel("score")
plt.ylabel("messages")
plt.legend()
