"""A posterior as one page for the browser, which loads nothing and sends nothing."""

from .page import report_html, write_report

__all__ = ["report_html", "write_report"]
