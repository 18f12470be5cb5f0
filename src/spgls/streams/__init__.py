"""Rows that are read anew in every pass: files larger than memory, and whatever yields blocks."""

from __future__ import annotations

from spgls.streams.reading import Reading
from spgls.streams.streamed import Stream, stream

__all__ = ["Reading", "Stream", "stream"]
