"""Which code of the package a process runs."""

import hashlib
import subprocess
from pathlib import Path

import trialogue


def source_code() -> dict[str, str]:
    """Commit of the checkout the package runs from, and a hash of what differs from it; empty outside of one."""
    package = Path(trialogue.__file__).parent

    def git(*arguments: str) -> bytes:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout

    try:
        # A package installed inside somebody else's checkout is not that checkout's code.
        git("ls-files", "--error-unmatch", "__init__.py")
        commit = git("rev-parse", "HEAD").decode().strip()
        changes = git("diff", "HEAD", "--binary", "--", ".")
        untracked = git("ls-files", "--others", "--exclude-standard", "-z", "--", ".").decode()
    except (OSError, subprocess.CalledProcessError):
        return {}
    digest = hashlib.sha256(changes)
    for name in filter(None, untracked.split("\0")):
        digest.update(name.encode() + b"\0" + (package / name).read_bytes())
    if not changes and not untracked:
        return {"commit": commit}
    return {"commit": commit, "changes_sha256": digest.hexdigest()}
