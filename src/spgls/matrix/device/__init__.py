"""Data on a device, such as a GPU, which stays there: only vectors travel."""

from spgls.matrix.device.wrap import device_matrix

__all__ = ["device_matrix"]
