"""What a worker has loaded is not looked through after each task."""

import subprocess
import sys


def test_what_two_tasks_have_loaded_is_taken_out_of_the_collection():
    script = (
        "import gc\n"
        "from spark.worker_memory import keep_loaded\n"
        "keep_loaded()\n"
        "first = gc.get_freeze_count()\n"
        "loaded = [[] for _ in range(10_000)]\n"
        "keep_loaded()\n"
        "kept = gc.get_freeze_count()\n"
        "later = [[] for _ in range(10_000)]\n"
        "keep_loaded()\n"
        "assert 0 < first <= kept - 10_000, (first, kept)\n"
        "assert kept == gc.get_freeze_count(), (kept, gc.get_freeze_count())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
