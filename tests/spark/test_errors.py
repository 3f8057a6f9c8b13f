"""What a job raises itself is always the error that a user is shown as a sentence."""

import ast
from pathlib import Path

from streamfrom.spark.errors import JobError, RequestError


def test_jobs_raise_nothing_else():
    jobs = Path(__file__).parents[2] / "spark" / "jobs"
    raised = {
        node.exc.func.id
        for path in jobs.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }
    assert raised <= {JobError.__name__, RequestError.__name__}
