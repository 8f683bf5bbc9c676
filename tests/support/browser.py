"""A real Chromium for the tests of the report, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = (
    "install Chromium with `apt-get install chromium` (Debian, Ubuntu), or with "
    "`python -m playwright install chromium`, or name one in HAMILTREE_CHROMIUM"
)


def chromium(playwright: Any) -> str:
    """Path of a Chromium: the one that was named, the system's, or Playwright's own."""
    named = os.environ.get("HAMILTREE_CHROMIUM")
    found = [named] if named else [shutil.which(name) for name in NAMES]
    found.append(playwright.chromium.executable_path)
    for path in found:
        if path and Path(path).exists():
            return str(path)
    missing(f"no Chromium on this machine: {INSTALL}")


def missing(reason: str) -> NoReturn:
    """Skip with the reason, or fail where HAMILTREE_BROWSER says that there must be a browser."""
    if os.environ.get("HAMILTREE_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser; skips where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install playwright")
    with sync_playwright() as playwright:
        # Without its sandbox, which needs rights that containers lack: it opens our own pages only.
        running = playwright.chromium.launch(
            executable_path=chromium(playwright), args=["--no-sandbox"]
        )
        yield running
        running.close()


class Watched:
    """A page that remembers what it must not do: complain, ask for anything, open dialogs."""

    def __init__(self, running: Any, **context: Any) -> None:
        self.context = running.new_context(**context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path) -> Any:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body.ready")
        return self.page

    def close(self) -> None:
        self.context.close()


def in_percent(p: float) -> str:
    """A probability as the page writes it: a decimal near the ends, and never 0 or 100."""
    if 0.9995 < p < 1:
        return "over 99.9%"
    if 0 < p < 0.0005:
        return "under 0.1%"
    return f"{100 * p:.{int(p < 0.0995 or p > 0.9005)}f}%"


def accessibility(page: Any) -> list[dict[str, Any]]:
    """What axe-core finds wrong with a page; skips where it is not installed."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-core is not installed: pip install axe-playwright-python")
    found = Axe().run(page).response
    assert len(found["passes"]) > 20, "axe-core looked at nothing"
    violations: list[dict[str, Any]] = found["violations"]
    return violations
