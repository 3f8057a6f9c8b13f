"""Code that `./dev proto` generates."""

import subprocess
import sys
from pathlib import Path

import streamfrom.proxy


def assert_generated(proto: str, folder: Path) -> None:
    """Generate the code of a proxy package's .proto in *folder*, and compare it."""
    source = Path(streamfrom.proxy.__file__).parent / proto
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{source.parent}", f"--python_out={folder}",
         f"--pyi_out={folder}", source.name],
        check=True,
    )  # fmt: skip
    for made in folder.iterdir():
        assert made.read_text() == (source.parent / made.name).read_text(), "run ./dev proto"
