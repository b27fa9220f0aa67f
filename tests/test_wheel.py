"""The wheels of the library and of the laboratory, alone and together."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="building them takes hatchling: install trialogue[test]")

ROOT = Path(__file__).parents[1]
SOURCES = {"trialogue": ROOT, "trialogue_lab": ROOT / "lab"}
RESULTS = ROOT / "lab" / "results"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build each wheel from its source archive and unpack it to a folder."""
    folders = {}
    for package, sources in SOURCES.items():
        folder = tmp_path_factory.mktemp(package)
        (archive,) = _built("sdist", sources, folder)
        with tarfile.open(archive) as members:
            members.extractall(folder, filter="data")
        (wheel,) = _built("wheel", folder / archive.name.removesuffix(".tar.gz"), folder)
        with zipfile.ZipFile(wheel) as members:
            members.extractall(folder / "site")
        folders[package] = folder / "site"
    return folders


def test_the_wheels_contain_every_file_of_their_packages(installed):
    for package, sources in SOURCES.items():
        source, site = sources / "src" / package, installed[package]
        files = {path.relative_to(source) for path in source.rglob("*") if "__pycache__" not in path.parts}
        assert files <= {path.relative_to(site / package) for path in site.rglob(f"{package}/**/*")}
        assert not [path for path in site.rglob("*") if path.suffix in (".svg", ".html")]
    assert not list(installed["trialogue"].glob("trialogue_lab*"))
    for done in RESULTS.rglob("DONE"):
        kept = installed["trialogue_lab"] / "trialogue_lab" / "results" / done.parent.relative_to(RESULTS)
        assert (kept / "DONE").read_bytes() == done.read_bytes()
        assert not (kept / "work").exists()


@pytest.mark.slow
def test_the_wheel_of_the_laboratory_reads_its_results_and_runs_a_study(installed, tmp_path):
    def trialogue(*words: str) -> str:
        return _run(tmp_path, list(installed.values()), *words).stdout

    assert (tmp_path / trialogue("report", "query-complexity").strip()).parent == tmp_path
    assert '"holds"' in trialogue("ledger", "--json")
    assert "rows.jsonl" in trialogue("run", "query-complexity", "--preset", "smoke")
    # The new run is shown together with the committed results.
    assert '"holds"' in trialogue("ledger", "--json")
    assert "Your runs in runs" in trialogue("ledger", "query-complexity")
    (own,) = (tmp_path / "runs" / "query-complexity").iterdir()
    (committed,) = (RESULTS / "query-complexity").iterdir()
    assert committed.name in trialogue("compare", str(own), f"query-complexity@{committed.name}")


def test_a_command_of_the_laboratory_explains_its_installation(installed, tmp_path):
    done = _run(tmp_path, [installed["trialogue"]], "run", "query-complexity", check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install trialogue-lab" in done.stderr


def _run(
    folder: Path, sites: list[Path], *words: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the command line on the unpacked wheels, without the packages that are being developed."""
    # The packages under test must not be imported from the development environment. With -S their import hooks do
    # not run, and a folder of links to all other packages omits their metadata.
    packages = folder / "packages"
    if not packages.exists():
        packages.mkdir()
        for path in (
            path for site in map(Path, sys.path) if site.name == "site-packages" for path in site.iterdir()
        ):
            if "trialogue" not in path.name:
                (packages / path.name).symlink_to(path)
    program = (
        "import runpy, sys\n"
        f"sys.path[:0] = {[*map(str, sites), str(packages)]}\n"
        "sys.argv[0] = 'trialogue'\n"
        "runpy.run_module('trialogue', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-S", "-c", program, *words],
        cwd=folder,
        env={"PATH": "", "HOME": str(folder), "OMP_NUM_THREADS": "1"},
        check=check,
        capture_output=True,
        text=True,
    )


def _built(target: str, sources: Path, folder: Path) -> list[Path]:
    build = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    return list(folder.glob("*.tar.gz" if target == "sdist" else "*.whl"))
