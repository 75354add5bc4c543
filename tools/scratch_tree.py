"""A copy of the working tree in which a script may change and build what it likes."""

import filecmp
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tracked_files(root: Path) -> set[str]:
    """All that git tracks or would track, uncommitted changes included; build outputs are ignored."""
    # CI may run as root in a checkout that belongs to someone else.
    git = ["git", "-c", f"safe.directory={root}"]
    listing = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
    )
    names = listing.stdout.decode().split("\0")
    return {name for name in names if name and (root / name).is_file()}


def sync(root: Path, scratch: Path) -> None:
    """Makes scratch equal to root but for ignored files, which stay.

    Only files that differ are written, with the time of now: what was built from the others is still
    good, and what was built from a changed file is always older than it.
    """
    names = tracked_files(root)
    for name in sorted(names):
        source, target = root / name, scratch / name
        if not target.is_file() or not filecmp.cmp(source, target, shallow=False):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        shutil.copymode(source, target)
    # A repository of its own, so that git in here never acts on the tree around it.
    if not (scratch / ".git").exists():
        subprocess.run(["git", "init", "-q"], cwd=scratch, check=True)
    for name in tracked_files(scratch) - names:
        (scratch / name).unlink()


def build_environment(scratch: Path) -> dict[str, str]:
    """Lets ccache take a file in the scratch tree for the same file in any other copy."""
    return os.environ | {"CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
