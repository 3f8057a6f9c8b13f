"""The bill of materials of a release: what `requirements-proxy.lock` installs, as CycloneDX 1.6 in JSON.

`python -m tests.release.sbom > sbom.json`. SOURCE_DATE_EPOCH is its time, so that the same commit gives the same bytes.
"""

import json
import os
import re
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamfrom import __version__


LOCK = Path(__file__).parents[2] / "requirements-proxy.lock"
PINNED = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)(?:\[[a-z0-9,-]+\])?==([^\s;\\]+)(?: ; ([^\\\n]+?))? \\$", re.M
)


def sbom(lock: str, epoch_s: int) -> dict[str, Any]:
    """Return the document for the text of a lock file."""
    parts = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": (purl := f"pkg:pypi/{name}@{version}"),
            "bom-ref": purl,
            **({"properties": [{"name": "marker", "value": marker}]} if marker else {}),
        }
        for name, version, marker in PINNED.findall(lock)
    ]
    whole = f"pkg:pypi/streamfrom@{__version__}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{whole} {lock}").urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch_s, UTC).isoformat(),
            "component": {
                "type": "application",
                "name": "streamfrom",
                "version": __version__,
                "purl": whole,
                "bom-ref": whole,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": whole, "dependsOn": [part["purl"] for part in parts]}],
    }


if __name__ == "__main__":
    epoch_s = int(os.environ["SOURCE_DATE_EPOCH"])
    json.dump(sbom(LOCK.read_text(), epoch_s), sys.stdout, indent=1)
    sys.stdout.write("\n")
