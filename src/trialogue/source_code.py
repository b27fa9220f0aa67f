"""Version of the package's source code."""

import hashlib
import subprocess
from pathlib import Path

import trialogue


def source_code() -> dict[str, str]:
    """Return the commit of the git checkout that contains the package, and a hash of uncommitted changes.

    Returns:
        The keys "commit" and, if there are changes, "changes_sha256". Empty outside of a checkout.
    """
    package = Path(trialogue.__file__).parent

    def git(*arguments: str) -> bytes:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout

    try:
        # A package installed inside the checkout of another project is not tracked by it.
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
