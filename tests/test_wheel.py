"""The source archive and the wheel by themselves: what they install reads its results and runs a study."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="building them takes hatchling: install trialogue[test]")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs, which is built from what the source archive holds."""
    folder = tmp_path_factory.mktemp("wheel")
    (archive,) = _built("sdist", ROOT, folder)
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (wheel,) = _built("wheel", folder / archive.name.removesuffix(".tar.gz"), folder)
    with zipfile.ZipFile(wheel) as held:
        held.extractall(folder / "site")
    return folder / "site"


def test_everything_of_the_package_is_in_the_wheel(installed: Path) -> None:
    package = ROOT / "src" / "trialogue"
    files = {path.relative_to(package) for path in package.rglob("*") if "__pycache__" not in path.parts}
    assert files <= {path.relative_to(installed / "trialogue") for path in installed.rglob("trialogue/**/*")}
    for done in (ROOT / "results").rglob("DONE"):
        kept = installed / "trialogue" / "results" / done.parent.relative_to(ROOT / "results")
        assert (kept / "DONE").read_bytes() == done.read_bytes()
        assert not (kept / "work").exists()
    assert not [path for path in installed.rglob("*") if path.suffix in (".svg", ".html")]


def test_a_wheel_reads_its_results_and_runs_a_study(installed: Path, tmp_path: Path) -> None:
    def trialogue(*words: str) -> str:
        command = [sys.executable, "-m", "trialogue", *words]
        environment = {
            "PYTHONPATH": str(installed),
            "PATH": "",
            "HOME": str(tmp_path),
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    assert (tmp_path / trialogue("report", "query-complexity").strip()).parent == tmp_path
    assert '"holds"' in trialogue("ledger", "--json")
    assert "rows.jsonl" in trialogue("run", "query-complexity", "--preset", "smoke")
    # The committed results are still read, and the run is shown next to them.
    assert '"holds"' in trialogue("ledger", "--json")
    assert "Your runs in runs" in trialogue("ledger", "query-complexity")
    (own,) = (tmp_path / "runs" / "query-complexity").iterdir()
    published = f"query-complexity@{_published()}"
    assert _published() in trialogue("compare", str(own), published)


def _built(target: str, sources: Path, folder: Path) -> list[Path]:
    build = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    return list(folder.glob("*.tar.gz" if target == "sdist" else "*.whl"))


def _published() -> str:
    (result,) = (ROOT / "results" / "query-complexity").iterdir()
    return result.name
