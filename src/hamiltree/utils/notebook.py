"""Plain HTML for notebooks: texts, badges and tables that follow the notebook's own colours."""

from __future__ import annotations

from html import escape

GOOD, BAD = "#1a7f4b", "#b3410e"


def badge(text: str, good: bool) -> str:
    """A short text on a coloured ground."""
    colour = GOOD if good else BAD
    return (
        f'<span style="display:inline-block;padding:1px 9px;border-radius:99px;color:#fff;'
        f'background:{colour};font:600 12px system-ui,sans-serif">{escape(text)}</span>'
    )


def block(text: str) -> str:
    """Text as it would be printed."""
    return (
        '<pre style="margin:4px 0;line-height:1.35;white-space:pre-wrap;background:none">'
        f"{escape(text)}</pre>"
    )


def html_of_text(text: str, label: str = "", *, good: bool = True) -> str:
    """What ``_repr_html_`` of a text returns, with a badge over it where there is a label."""
    return f"<div>{badge(label, good) if label else ''}{block(text)}</div>"


class Text(str):
    """Text whose representation is itself, so that a prompt shows it as ``print`` would."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_of_text(str(self))
