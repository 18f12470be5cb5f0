"""
Rows on a cluster
=================

A Dask array is passed as ``X`` like any other. Its rows stay with the workers: coefficients go out,
sums come back. The cluster here is on this machine, and the code is the same for a real one.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from spgls import Floor, StackelbergRegressor

# %%
# Two workers, and rows in eight chunks.

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)
X = da.random.default_rng(0).normal(size=(40_000, 5), chunks=(5_000, 5)).persist()
y = X[:, 0] + 2.0 * X[:, 1] + da.random.default_rng(1).normal(size=40_000, chunks=5_000)

model = StackelbergRegressor(goal=Floor(1.0)).fit(X, y)
print(model.status_.value, model.certificate_.kind)
print("coefficients:", np.round(model.coef_, 2))

# %%
# Predictions are Dask arrays too; nothing is computed until you ask.

said = model.predict(X)
print(type(said).__module__.split(".")[0], said.shape, said.numblocks)
print(f"R2 where nobody moves: {model.score(X, y):.2f}")

# %%
# The same rows in memory give the same model.

same = StackelbergRegressor(goal=Floor(1.0)).fit(X.compute(), y.compute())
print("same coefficients:", np.allclose(same.coef_, model.coef_))

# %%
# For a picture a few rows are enough, and only those are computed.

plt.scatter(y[:500].compute(), said[:500].compute(), s=8)
plt.xlabel("label")
plt.ylabel("prediction")
client.close()
cluster.close()
