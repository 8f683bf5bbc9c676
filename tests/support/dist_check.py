"""Would a stranger's install work? ``make dist-check``, or ``python -m tests.support.dist_check``.

Builds the source distribution and, from it, the wheel, into ``dist``; looks through both; installs
each into an empty environment; and runs ``hamiltree demo`` and the program of the README there, in
an empty folder, with an empty cache of compiled code. Needs the dependency groups ``dist`` and
``test``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from .examples import PROGRAM

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
MADE_BY_THE_BUILD = {"PKG-INFO", ".gitignore"}
"""What a source distribution has at its top beside files of the repository."""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """What the command prints; its errors end this program."""
    print("+", *(Path(part).name for part in command), flush=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed with status {done.returncode}")
    return done.stdout


# ------------------------------------------------------------------ what is inside


def tracked_files() -> set[str]:
    """Files that git knows, with / between folders."""
    return set(run("git", "ls-files", "-z").split("\0")) - {""}


def files_of_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}


def files_of_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def check_contents(sdist: Path, wheel: Path) -> None:
    """All of the package in both, all that tests read in one, and only files that git knows."""
    tracked = tracked_files()
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/hamiltree/")}
    in_wheel = {name for name in files_of_wheel(wheel) if ".dist-info/" not in name}
    in_sdist = files_of_sdist(sdist)
    needed = {name for name in tracked if name.startswith(("benchmarks/", "docs/", "tests/"))}
    needed |= {f"src/{name}" for name in package} | {"LICENSE", "README.md", "pyproject.toml"}
    for what, names in (
        ("the wheel lacks", package - in_wheel),
        ("stray files in the wheel", in_wheel - package),
        ("the source distribution lacks", needed - in_sdist),
        ("stray files in the source distribution", in_sdist - tracked - MADE_BY_THE_BUILD),
    ):
        if names:
            sys.exit(f"{what}: {', '.join(sorted(names))}")
    print(f"{len(in_wheel)} files in the wheel, {len(in_sdist)} in the source distribution")


def check_that_tests_load(sdist: Path, folder: Path) -> None:
    """Every test of the source distribution can be imported from there."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    print(run(*command, cwd=top, PYTHONPATH=str(top / "src")).strip().splitlines()[-1])


# ------------------------------------------------------------------ whether it works


def check_install(distribution: Path, folder: Path) -> None:
    """Install into an empty environment, and run the demo in an empty folder."""
    venv.create(folder / "environment", with_pip=True)
    scripts = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", distribution)
    empty = folder / "empty"
    empty.mkdir()
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_CACHE_DIR": ""}
    where = run(scripts / "python", "-c", "import hamiltree; print(hamiltree.__file__)", cwd=empty)
    if not Path(where.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"imported from elsewhere: {where}")
    said = run(scripts / "hamiltree", "demo", cwd=empty, **cache)
    made = sorted(path.name for path in empty.rglob("*") if path.is_file())
    if not any(name.endswith(".html") for name in made):
        sys.exit(f"{said}\nthe demo wrote no report, only: {made}")
    print(f"{distribution.name}: the demo ran, and wrote {', '.join(made)}")
    readme = (ROOT / "README.md").read_text("utf-8")
    program = empty / "readme.py"
    program.write_text("\n".join(found[1] for found in PROGRAM.finditer(readme)), "utf-8")
    said = run(scripts / "python", program, cwd=empty, **cache)
    if "% of trees" not in said:
        sys.exit(f"{said}\nthe program of the README printed no tree")
    print(f"{distribution.name}: the program of the README ran")


def main() -> None:
    for old in DIST.glob("hamiltree-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    check_contents(sdist, wheel)
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    with tempfile.TemporaryDirectory() as folder:
        check_that_tests_load(sdist, Path(folder))
    for distribution in (wheel, sdist):
        with tempfile.TemporaryDirectory() as folder:
            check_install(distribution, Path(folder))


if __name__ == "__main__":
    main()
