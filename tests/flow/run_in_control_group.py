"""Runs a command in a control group of its own whose memory is limited: run_in_control_group.py MEBIBYTES COMMAND...

Ends with 77, which means "skipped", where no such group can be made (it needs the right to write below /sys/fs/cgroup).
"""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77


def make_group(limit_bytes):
    """A new group as (directory, file that takes process ids); None where that is impossible."""
    root = pathlib.Path("/sys/fs/cgroup")
    name = f"polder-test-{os.getpid()}"
    for parent, limit in ((root / "memory", "memory.limit_in_bytes"), (root, "memory.max")):
        group = parent / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(limit_bytes))
            return group, group / "cgroup.procs"
        except OSError:
            group.rmdir()
    return None


def main():
    made = make_group(int(sys.argv[1]) << 20)
    if made is None:
        print("no control group can be made here")
        return SKIPPED
    group, processes = made
    try:
        command = sys.argv[2:]
        child = subprocess.Popen(["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(processes), *command])
        status = child.wait()
        print(f"ended with {status}" if status >= 0 else f"killed by signal {-status}")
        return 0 if status == 0 else 1
    finally:
        group.rmdir()


if __name__ == "__main__":
    sys.exit(main())
