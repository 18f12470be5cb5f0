"""A report on a fitted model, as one page that people can send on."""

from __future__ import annotations

from spgls.report.write import write_report

__all__ = ["write_report"]
