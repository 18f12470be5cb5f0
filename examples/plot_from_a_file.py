"""
A file that does not fit in memory
==================================

``stream`` reads a file block by block. The rows are never in memory together, and the answer is the
same as if they were.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from spgls import Floor, Population, solve, solve_path, stream

# %%
# A file of labels and five features. This one is small, so that the example is quick; the code is
# the same for one of a hundred gigabytes.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
rng = np.random.default_rng(0)
rows = rng.normal(size=(50_000, 6))
rows[:, 0] += rows[:, 1:4].sum(axis=1)  # the labels
np.save(path, rows)

# %%
# ``y=0`` says that the first column holds the labels.

source = stream(path, y=0)
people = Population.mixed(0.5, honest=0.5)
found = solve(source, source.y, Floor(1.0), people, fit_intercept=True)
print(source.shape, found.status.value, found.certificate.kind)
print(f"{found.stats.passes:.0f} passes over the file")

in_memory = solve(rows[:, 1:], rows[:, 0], Floor(1.0), people, fit_intercept=True)
print(f"largest difference to a fit in memory: {np.abs(found.coef - in_memory.coef).max():.0e}")

# %%
# Thirty honest shares take no more reading than one.

shares = np.linspace(0.05, 1.0, 30)
path = solve_path(
    source,
    source.y,
    Floor(1.0),
    [Population.mixed(0.5, honest=share) for share in shares],
    fit_intercept=True,
)
print(f"{path.stats.passes:.0f} passes for {len(path)} games")

figure, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(shares, path.coef[:, :3])
ax.set(xlabel="share of honest people", ylabel="coefficients of three features")
figure.tight_layout()
folder.cleanup()
