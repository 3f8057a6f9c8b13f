"""What is installed is locked: each file by its hash, and by the names that pyproject.toml has."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement


ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
PINNED = re.compile(r"([a-z0-9][a-z0-9._-]*)(?:\[[a-z0-9,-]+\])?==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def normal(name: str) -> str:
    """Return a project's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(lock: str) -> list[tuple[str, str, list[str]]]:
    """Return name, version and hashes of each requirement in a lock file."""
    text = (ROOT / lock).read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found = []
    for entry in re.split(r"\n(?=\S)", lines.strip()):
        match = PINNED.match(entry)
        assert match, f"{lock}: {entry.splitlines()[0]}"
        found.append((normal(match[1]), match[2], HASH.findall(entry)))
    return found


def named(*extras: str) -> set[str]:
    """Return the names that pyproject.toml wants, with some of its extras."""
    project = PROJECT["project"]
    wanted = project["dependencies"] + [
        each for extra in extras for each in project["optional-dependencies"][extra]
    ]
    return {normal(re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0]) for each in wanted}


def test_there_is_a_lock_for_each_purpose():
    assert LOCKS == [
        "requirements-build.lock",
        "requirements-dev.lock",
        "requirements-docs.lock",
        "requirements-proxy.lock",
        "requirements.lock",
    ]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_its_version_and_hashes(lock):
    found = requirements(lock)
    assert found
    assert [name for name, _, hashes in found if not hashes] == []
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|-e |git\+", text)


def test_what_is_required_with_extras_is_pinned_with_them():
    # An older pip takes a pin without extras for another project, finds a newer version, and refuses all.
    text = (ROOT / "requirements-dev.lock").read_text()
    for name in {name for name, _, _ in requirements("requirements-dev.lock")}:
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # of another platform or Python
            continue
        for each in map(Requirement, required):
            if each.extras and (each.marker is None or each.marker.evaluate({"extra": ""})):
                assert f"\n{normal(each.name)}[{','.join(sorted(each.extras))}]==" in text


def test_the_locks_have_what_pyproject_names():
    everything = {name for name, _, _ in requirements("requirements.lock")}
    assert named("dev", "docs", "spark") <= everything
    assert named("dev") <= {name for name, _, _ in requirements("requirements-dev.lock")}
    assert named("docs") <= {name for name, _, _ in requirements("requirements-docs.lock")}
    proxy = {name for name, _, _ in requirements("requirements-proxy.lock")}
    assert named() <= proxy
    assert not proxy & (named("dev") - named()), "the image has nothing for development"


def test_the_locks_agree_on_versions():
    versions = {(name, version) for name, version, _ in requirements("requirements.lock")}
    for lock in ("requirements-dev.lock", "requirements-docs.lock", "requirements-proxy.lock"):
        assert {(name, version) for name, version, _ in requirements(lock)} <= versions
    known = dict(versions)
    for name, version, _ in requirements("requirements-build.lock"):
        assert known.get(name, version) == version


def test_dev_makes_no_environment_with_the_python_of_its_own_one():
    # It would remove that Python first.
    own = f"{ROOT}/.venv/bin"
    done = subprocess.run(
        ["bash", "-c", '. ./dev >/dev/null; printf %s "$PATH"'],
        cwd=ROOT,
        env={"PATH": f"{own}:/usr/bin:/bin:{own}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "/usr/bin:/bin"


def test_the_build_is_pinned_and_locked():
    (backend,) = PROJECT["build-system"]["requires"]
    name, _, version = backend.partition("==")
    assert (normal(name), version) in {
        (name, version) for name, version, _ in requirements("requirements-build.lock")
    }


def test_actions_and_the_image_are_named_by_digest():
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", workflow.read_text())
        assert used
        assert all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", each) for each in used), used
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert len(set(bases)) == 1
    servers = re.findall(r"image: (?!streamfrom)(\S+)", (ROOT / "compose.yaml").read_text())
    assert servers
    for image in (bases[0], *servers):
        assert re.fullmatch(r"[\w./:-]+@sha256:[0-9a-f]{64}", image)


def test_hooks_before_a_commit_are_checks_of_dev_check_at_the_locked_versions():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]
    ours = re.findall(r"entry: \.venv/bin/(\S+(?: [a-z]+)?)", hooks)
    checks = re.findall(r"check_one \S+ (\S+(?: [a-z]+)?)", (ROOT / "dev").read_text())
    assert len(ours) > 3
    assert set(ours) <= set(checks)


def test_pip_is_told_to_check_hashes_wherever_it_installs_dependencies():
    for name in ("dev", "Dockerfile"):
        text = (ROOT / name).read_text()
        assert "--require-hashes" in text
        for line in text.splitlines():
            if "requirement" in line and "pip" in line and not line.startswith("#"):
                assert "--require-hashes" in line, line


def test_what_compose_starts_has_no_right_that_it_does_not_need():
    text = (ROOT / "compose.yaml").read_text()
    hardened = text[text.index("x-hardened") : text.index("x-shard")]
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "restart:"):
        assert line in hardened
    assert text.count("<<: *hardened") == 2
