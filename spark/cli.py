"""`streamfrom-spark JOB …`: also a main file for spark-submit, which then chooses where the job runs."""

import sys
from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one job; return 0, 1 if it broke off, or 2 if the request cannot be fulfilled."""
    try:
        # Imported here, because it needs packages that only the extra `spark` installs.
        from streamfrom.spark.command import run_command

        return run_command(sys.argv[1:] if argv is None else argv)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"streamfrom-spark: {error}: pip install 'streamfrom[spark]'\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
