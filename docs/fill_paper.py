"""Copy the tables and figures of a finished ``hamiltree paper`` run into the pages.

    python docs/fill_paper.py paper-output

Everything between ``<!-- NAME -->`` and ``<!-- end -->`` is replaced by the file NAME of the run;
figures go to docs/images. What the run does not have stays as it is, and is named.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = ("paper.md", "paper-splits.md")
FIGURES = ("figure3-leaves-cgm.png", "figure4-error-cgm.png", "figure5-accuracy-real.png")


def main(run: Path) -> None:
    missing = []

    def filled(match: re.Match[str]) -> str:
        path = run / match["name"]
        if not path.is_file():
            missing.append(match["name"])
            return match[0]
        return f"<!-- {match['name']} -->\n{path.read_text('utf-8').rstrip()}\n<!-- end -->"

    pattern = r"<!-- (?P<name>[\w/-]+\.md) -->\n.*?<!-- end -->"
    for page in PAGES:
        text = (DOCS / page).read_text("utf-8")
        (DOCS / page).write_text(re.sub(pattern, filled, text, flags=re.DOTALL), "utf-8")
    for name in FIGURES:
        if (run / name).is_file():
            shutil.copy(run / name, DOCS / "images" / f"paper-{name}")
        else:
            missing.append(name)
    print("left as they were:", ", ".join(missing) or "none")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
