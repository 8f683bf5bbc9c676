"""Would a stranger's install work? ``make dist-check``, or ``python -m tests.support.dist_check``.

Builds the source distribution and, from it, the wheel, into ``dist``; looks through both; installs
each into an empty environment; and goes a newcomer's way there, in an empty folder and with an
empty cache of compiled code: ``hamiltree demo``, the programs and commands of the README, and, with
the wheel, the first steps and the cells of the tutorials. Needs the dependency groups ``dist`` and
``test``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from .examples import programs

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
MADE_BY_THE_BUILD = {"PKG-INFO", ".gitignore"}
"""What a source distribution has at its top beside files of the repository."""
COMMAND = re.compile(r"^    (hamiltree (?:fit|report|predict) .*?)(?:  #.*)?$", re.MULTILINE)
"""Of the README; ``demo`` and ``compile`` stand in its text."""
TABLES = """
from hamiltree.datasets import load_heart

X, y = load_heart(return_X_y=True)
X.assign(diagnosis=y).to_csv("patients.csv", index=False)
X.head(20).to_csv("new_patients.csv", index=False)
"""
"""The files that these commands name."""


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
    """Install into an empty environment, and go a newcomer's way in an empty folder."""
    venv.create(folder / "environment", with_pip=True)
    scripts = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", distribution)
    empty = folder / "empty"
    empty.mkdir()
    cache = {
        "XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_CACHE_DIR": "", "MPLBACKEND": "Agg",
    }  # fmt: skip
    where = run(scripts / "python", "-c", "import hamiltree; print(hamiltree.__file__)", cwd=empty)
    if not Path(where.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"imported from elsewhere: {where}")
    said = run(scripts / "hamiltree", "demo", cwd=empty, **cache)
    made = sorted(path.name for path in empty.rglob("*") if path.is_file())
    if not any(name.endswith(".html") for name in made):
        sys.exit(f"{said}\nthe demo wrote no report, only: {made}")
    print(f"{distribution.name}: the demo ran, and wrote {', '.join(made)}")
    for page in pages_to_run(distribution):
        check_page(page, scripts, empty, cache)
    check_commands(scripts, empty, cache)


def pages_to_run(distribution: Path) -> list[Path]:
    """The README; with the wheel the first steps and the tutorials, too."""
    others = [ROOT / "docs" / "start.md", *sorted((ROOT / "docs").glob("tutorial-*.md"))]
    return [ROOT / "README.md", *(others if distribution.suffix == ".whl" else ())]


def check_page(page: Path, scripts: Path, folder: Path, cache: dict[str, str]) -> None:
    """Run a page's programs as one, with what tutorials assert about their outputs."""
    program = folder / f"{page.stem}.py"
    program.write_text("\n".join(source for source, _ in programs(page, hidden=True)), "utf-8")
    said = run(scripts / "python", program, cwd=folder, **cache)
    if not said.strip():
        sys.exit(f"{page.name} printed nothing")
    if "Warning" in said:
        sys.exit(f"{said}\n{page.name} warned")
    print(f"{page.name}: ran")


def check_commands(scripts: Path, folder: Path, cache: dict[str, str]) -> None:
    """Run the README's commands, on the heart data under the names that it gives them."""
    commands = COMMAND.findall((ROOT / "README.md").read_text("utf-8"))
    if len(commands) < 3:
        sys.exit("the README lost its commands")
    (folder / "tables.py").write_text(TABLES.lstrip(), "utf-8")
    run(scripts / "python", "tables.py", cwd=folder, **cache)
    for command in commands:
        name, *arguments = shlex.split(command)
        said = run(scripts / name, *arguments, cwd=folder, **cache)
    if "diseased" not in said or not (folder / "report.html").exists():
        sys.exit(f"{said}\nthe README's commands did not predict, or wrote no report")
    print(f"README.md: {len(commands)} commands ran")


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
