"""docs/comparison.md claims nothing of this product that no test and no figure shows."""

import re
from pathlib import Path


ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text()
PROOF = re.compile(r"`((?:tests|bench)/[^`]+)`|\]\(([^)#]+)[^)]*\)")


def table(section: str) -> list[list[str]]:
    """Return the cells of the first table of a section, without its head."""
    body = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


CLAIMED = [feature for feature, ours, *_ in table("Features") if ours != "no"]
SHOWN = {
    claim: proof
    for claims, proof in table("Where that is shown")
    for claim in claims.split("; ")
}


def test_the_page_claims_something() -> None:
    assert len(CLAIMED) > 20


def test_every_feature_says_where_it_is_shown() -> None:
    assert [feature for feature in CLAIMED if feature not in SHOWN] == []


def test_every_proof_is_a_file_of_this_repository() -> None:
    for claim, proof in SHOWN.items():
        named = [test or f"docs/{page}" for test, page in PROOF.findall(proof)]
        assert named, claim
        assert [path for path in named if not (ROOT / path).exists()] == [], claim
