"""Models kept in files: our own container, and ONNX for other programs."""

from __future__ import annotations

from spgls.io.model_file import ModelFileError, load_model, save_model
from spgls.io.onnx_export import export_onnx

__all__ = ["ModelFileError", "export_onnx", "load_model", "save_model"]
