"""docs/comparison.md claims nothing of this product that no test and no figure shows."""

from pathlib import Path

from tests.cases import cases, sections


ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text()


def table(section: str) -> list[list[str]]:
    """Return the cells of the first table of a section, without its head."""
    body = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cases(claim=str, proofs=str.split)
def test_every_feature_is_shown_somewhere(claim: str, proofs: list[str]) -> None:
    assert proofs
    assert [path for path in proofs if not (ROOT / path).exists()] == []


def test_nothing_is_claimed_that_is_not_shown() -> None:
    claimed = {feature for feature, ours, *_ in table("Features") if ours != "no"}
    (shown,) = sections(Path(__file__).with_suffix(".txt")).values()
    assert claimed == {claim for claim, _ in shown}
    assert len(claimed) > 20
