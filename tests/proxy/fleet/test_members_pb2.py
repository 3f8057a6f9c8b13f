"""The generated code is that of members.proto."""

import subprocess
import sys
from pathlib import Path


FOLDER = Path(__file__).parents[3] / "proxy" / "fleet"


def test_generated_code_is_that_of_the_proto(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", f"--python_out={tmp_path}",
         f"--pyi_out={tmp_path}", "members.proto"],
        check=True,
    )  # fmt: skip
    for made in tmp_path.iterdir():
        assert made.read_text() == (FOLDER / made.name).read_text(), "run ./dev proto"
