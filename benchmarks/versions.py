"""Where the code of a version of spgls is, and how a record names it."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Version", "find_version"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Version:
    """A name for the record, without a path of this machine, and where to import from."""

    name: str
    source: Path

    @property
    def digest(self) -> str:
        """What tells this code from any other."""
        sums = hashlib.sha256()
        for file in sorted(self.source.glob("spgls/**/*.py")):
            sums.update(str(file.relative_to(self.source)).encode() + file.read_bytes())
        return sums.hexdigest()[:12]

    def __str__(self) -> str:
        return f"{self.name} (code {self.digest})"


def find_version(wanted: str, spare: Path) -> Version:
    """Find a version by a folder, or by a git revision, whose code is unpacked into ``spare``."""
    folder = Path(wanted)
    if folder.is_dir():
        for source in (folder / "src", folder):
            if (source / "spgls" / "__init__.py").exists():
                return Version(_name(source.resolve()), source.resolve())
        raise ValueError(f"There is no spgls in {wanted}, nor in its src.")
    revision = _git(ROOT, "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}")
    if not revision:
        raise ValueError(f"{wanted!r} is neither a folder nor a git revision of this repository.")
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src"], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(spare, filter="data")
    return Version(f"git {revision[:12]}", spare / "src")


def _name(source: Path) -> str:
    """The revision, where the folder is a repository's own; else the folder's name."""
    top = source.parent if source.name == "src" else source
    if _git(top, "rev-parse", "--show-toplevel") != str(top):
        return f"folder {top.name}"
    changed = " with changes" if _git(top, "status", "--porcelain", "--", "src") else ""
    return f"git {_git(top, 'rev-parse', 'HEAD')[:12]}{changed}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
