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
