"""X in the memory of a device, and answers back in that of the host."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Libraries whose arrays X can be given in.
LIBRARIES = ("torch", "cupy", "jax", "array_api_strict")


def put(library: str, X: Any) -> Any:
    """A NumPy array or a SciPy matrix in another library, on its first device."""
    if library == "torch":
        import torch

        if sp.issparse(X):
            A = _rows_of(X)
            parts = [torch.asarray(np.array(part)) for part in (A.indptr, A.indices, A.data)]
            with warnings.catch_warnings():
                # PyTorch says once that it is new to this.
                warnings.simplefilter("ignore")
                # It finds fault with no entries at all, and has no way to tell them otherwise.
                made = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=A.nnz > 0)
                return made.cuda()
        return torch.asarray(np.array(X)).cuda()
    if library == "cupy":
        import cupy
        import cupyx.scipy.sparse

        return cupyx.scipy.sparse.csr_matrix(_rows_of(X)) if sp.issparse(X) else cupy.asarray(X)
    dense = X.toarray() if sp.issparse(X) else np.array(X)
    if library == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.device_put(dense)
    import array_api_strict

    return array_api_strict.asarray(dense, device=array_api_strict.Device("device1"))


def _rows_of(X: Any) -> Any:
    """Compressed rows that hold each entry once, in order: PyTorch takes no others."""
    A = X.tocsr(copy=True)
    A.sum_duplicates()
    return A


def get(values: Any) -> np.ndarray:
    """Numbers in double precision, wherever they were."""
    if type(values).__module__.startswith("array_api_strict"):
        import array_api_strict

        values = values.to_device(array_api_strict.Device("CPU_DEVICE"))
    elif hasattr(values, "cpu"):
        values = values.cpu()
    elif hasattr(values, "get"):
        values = values.get()
    return np.asarray(values, dtype=np.float64)
