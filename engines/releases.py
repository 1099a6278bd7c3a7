"""Python sources of the releases of an engine, without its compiled parts.

Parsers of engines are Python. The kernels beside them need hundreds of megabytes, CUDA, and a release of PyTorch each.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from engines.environments import FOLDER, SECONDS, NotInstalled

__all__ = ["RELEASES", "install_release", "release_path"]

RELEASES = {"vllm": ("0.33.0", "0.32.0", "0.31.0"), "sglang": ("0.5.23",)}
"""The newest releases on the package index, newest first."""
COMPILED_ENDINGS = (".so", ".cubin", "vllm-rs")


def release_path(package: str, version: str) -> Path:
    """Return the folder to import this release from.

    Raises:
        NotInstalled: `make engines` has not created it.
    """
    folder = FOLDER / "releases" / f"{package}-{version}"
    if not (folder / package).exists():
        raise NotInstalled(f"{folder} does not exist: `make engines` creates it")
    return folder


def install_release(package: str, version: str) -> None:
    """Download a release and unpack its Python sources, unless they exist."""
    try:
        release_path(package, version)
    except NotInstalled:
        print(f"downloading {package} {version}", file=sys.stderr)
    else:
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", folder, f"{package}=={version}"]
        subprocess.run(command, check=True, timeout=SECONDS)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            sources = [name for name in wheel.namelist() if not name.endswith(COMPILED_ENDINGS)]
            wheel.extractall(FOLDER / "releases" / f"{package}-{version}", sources)
