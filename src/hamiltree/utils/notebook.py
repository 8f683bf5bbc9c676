"""Plain HTML for notebooks: texts, badges, bars and sliders in the notebook's own colours."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from html import escape
from threading import Lock
from typing import Any

GOOD, BAD = "#1a7f4b", "#b3410e"
SECONDS = 0.25
"""Between two updates of a notebook's bar: each is a message to the browser."""


def badge(text: str, good: bool) -> str:
    """A short text on a coloured ground."""
    colour = GOOD if good else BAD
    return (
        f'<span style="display:inline-block;padding:1px 9px;border-radius:99px;color:#fff;'
        f'background:{colour};font:600 12px system-ui,sans-serif">{escape(text)}</span>'
    )


def preformatted(text: str) -> str:
    """Text as it would be printed; some notebooks have no fixed width for ``pre``."""
    return (
        '<pre style="margin:4px 0;white-space:pre-wrap;background:none;font:13px/1.35 '
        f"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\">{escape(text)}</pre>"
    )


def html_of_text(text: str, label: str = "", *, good: bool = True) -> str:
    """What ``_repr_html_`` of a text returns, with a badge over it where there is a label."""
    return f"<div>{badge(label, good) if label else ''}{preformatted(text)}</div>"


def slider(frames: Sequence[tuple[str, str]], name: str) -> str:
    """Frames, each a label and its HTML, of which a slider shows one; without scripts, the first.

    The others are texts of the script, which a notebook that runs no scripts leaves out.
    """
    labels = [label for label, _ in frames]
    shown = f'<div data-part="frame">{frames[0][1]}</div>'
    if len(frames) == 1:
        return shown
    data = json.dumps({"labels": labels, "frames": [html for _, html in frames]})
    data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--")  # nothing ends the script
    own = sha256(data.encode()).hexdigest()[:12]
    control = (
        '<label data-part="control" style="display:none;font:13px system-ui,sans-serif">'
        f'{escape(name)} <input type="range" min="0" max="{len(frames) - 1}" value="0" '
        'style="width:16em;vertical-align:middle"> <output></output></label>'
    )
    return (
        f'<div data-hamiltree="{own}">{control}{shown}</div>'
        f'<script type="text/javascript">{_SCRIPT % {"own": own, "data": data}}</script>'
    )


_SCRIPT = """
(() => {
  const {labels, frames} = %(data)s;
  for (const box of document.querySelectorAll('[data-hamiltree="%(own)s"]:not([data-ready])')) {
    box.dataset.ready = "";
    const part = (name) => box.querySelector(`[data-part="${name}"]`);
    const input = part("control").querySelector("input");
    const show = () => {
      part("frame").innerHTML = frames[input.value];
      part("control").querySelector("output").textContent = labels[input.value];
      input.setAttribute("aria-valuetext", labels[input.value]);
    };
    part("control").style.display = "block";
    input.addEventListener("input", show);
    show();
  }
})();
"""
"""Found by its number, not by ``document.currentScript``, which some notebooks do not set."""


class Text(str):
    """Text whose representation is itself, so that a prompt shows it as ``print`` would."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_of_text(str(self))


# ------------------------------------------------------------------ progress


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs us; IPython in a terminal is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


@contextmanager
def notebook_bar(what: str) -> Iterator[Callable[[float, float | None, str], None]]:
    """A bar of plain HTML, which needs no widgets; ``show(done, total, text)`` from any thread.

    Rich asks for ipywidgets in notebooks, and shows nothing without them.
    """
    from IPython.display import HTML, display

    started, last, lock = time.monotonic(), -SECONDS, Lock()
    handle: Any = display(HTML(_bar_html(what, 0, None, "")), display_id=True)

    def show(done: float, total: float | None, text: str) -> None:
        nonlocal last
        passed = time.monotonic() - started
        with lock:
            if passed - last < SECONDS:
                return
            last = passed
        left = ""
        if total and 0 < done <= total and passed > 2:
            left = f"about {passed * (total - done) / done:.0f} s left"
        words = ", ".join(part for part in (text, left) if part)
        handle.update(HTML(_bar_html(what, done, total, words)))

    try:
        yield show
    finally:
        handle.update(HTML(""))


def _bar_html(what: str, done: float, total: float | None, text: str) -> str:
    value = f' value="{done:g}" max="{total:g}"' if total else ""
    return (
        f'<div style="font:13px system-ui,sans-serif">{escape(what)} <progress{value} '
        f'aria-label="{escape(what)}" style="width:16em;vertical-align:middle"></progress> '
        f"{escape(text)}</div>"
    )
