"""Runs the examples of doc/memory.md: each command prints the lines that the page shows below it, in this order.

memory_examples_test.py PAGE BUILD_FOLDER

Examples that take seconds are left out: they have tests of their own.
"""
import re
import subprocess
import sys
import tempfile

page, build = sys.argv[1:3]
LEFT_OUT = ("stream_order_test", "utilisation.py", "eviction_patterns")


def is_command(block):
    return "build/" in block


def shown(line):
    """A line without addresses, and without the remark that the page has on its right."""
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", re.split(r"\s{2,}", line.strip())[0])


def examples(text):
    """Pairs of a command and the lines that the page shows for it."""
    for part in text.split("**Example")[1:]:
        part = part.split("\n## ")[0]
        found = None
        for fenced, inline in re.findall(r"```\n(.*?)```|`(POCL_DEVICES=[^`]*)`", part, re.S):
            block = fenced or inline
            if is_command(block):
                if found:
                    yield found
                found = (block, [])
            elif found:
                found[1].extend(shown(line) for line in block.splitlines() if line.strip())
        if found:
            yield found


def check(command, wanted, folder):
    command = re.sub(r"\bbuild/", lambda _: build + "/", command.replace("/tmp/", folder + "/"))
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and "PASSED  ] 0 tests" not in text, (command, text[-2000:])
    printed = [shown(line.replace("polder: memory: ", "")) for line in text.splitlines()]
    rest = iter(printed)
    for line in wanted:
        assert any(line in other for other in rest), f"{command}\ndoes not print, after the lines before it:\n{line}"


with open(page, encoding="utf-8") as file:
    all_examples = list(examples(file.read()))
chosen = [(command, wanted) for command, wanted in all_examples if not any(word in command for word in LEFT_OUT)]
assert len(chosen) > 12 and sum(len(wanted) for _, wanted in chosen) > 60, chosen
with tempfile.TemporaryDirectory() as folder:
    for command, wanted in chosen:
        check(command, wanted, folder)
print(f"{len(chosen)} of {len(all_examples)} examples print what the page shows")
