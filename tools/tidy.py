"""clang-tidy over C++ sources, except where nothing changed since it found nothing.

tidy.py CLANG_TIDY BUILD_DIR FILE…: BUILD_DIR is built, so that its ninja knows what each source includes. A source is
known by its contents, those of all that it includes and of .clang-tidy, and its compile command; for each that passes,
BUILD_DIR/tidy holds an empty file. Sources that BUILD_DIR does not compile (what only GCC can build) are named.

A header is checked through one source that includes it. For a header that no source in FILE… includes, the nearest source is used. A source may take SECONDS_MAX; one that takes longer does not pass.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS_MAX = 600


@functools.lru_cache(maxsize=None)
def digest_of(path):
    return hashlib.sha256(path.read_bytes()).digest() if path.exists() else b""


def settings_of(source):
    """The contents of the .clang-tidy in source's folder and those above."""
    return b"".join(digest_of(folder / ".clang-tidy") for folder in source.parents if folder.is_relative_to(ROOT))


def includes_by_object(build):
    """What ninja last saw each object read: blocks of "object: …" and indented paths relative to the build."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    includes, current = {}, None
    for line in listed.splitlines():
        if line.startswith("    "):
            current.append(build / line.strip())
        elif line:
            current = includes.setdefault(line.split(":")[0], [])
    return includes


@functools.lru_cache(maxsize=None)
def compile_commands(build):
    """Those of the build; a file that meson made of several sources (-Dunited=true) is replaced by a command for each of them."""
    commands = []
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = build / command["file"]
        if not re.search(r"-unity\d+\.cpp$", file.name):
            commands.append(command)
            continue
        for source in re.findall("^#include<(.*)>$", file.read_text(), re.MULTILINE):
            words = command["command"].rsplit(" ", 1)
            commands.append(command | {"file": source, "command": f"{words[0]} {source}"})
    return commands


def includes_by_source(build):
    """Path of each source in the build -> the files that its objects read."""
    by_object, by_source = includes_by_object(build), {}
    for command in compile_commands(build):
        source = pathlib.Path(os.path.normpath(build / command["file"]))
        read = by_source.setdefault(source, set())
        read.update(pathlib.Path(os.path.normpath(path)) for path in by_object.get(command["output"], []))
    return by_source


def sources_to_check(files, includes):
    """The sources in files, and for each header in files that none of them includes, one more source."""
    sources = [path for path in files if path.suffix == ".cpp"]
    seen = set().union(*(includes.get(source, set()) for source in sources))
    for header in sorted(path for path in files if path.suffix == ".h"):
        if header in seen:
            continue
        users = [source for source, read in includes.items() if header in read]
        if not users:
            print(f"no source that is compiled includes {header.relative_to(ROOT)}")
            continue
        # Nearby sources first: a folder's .clang-tidy is for its sources.
        user = min(users, key=lambda source: (-len(os.path.commonpath([source, header])), len(includes[source]), source))
        sources.append(user)
        seen |= includes[user]
    return sources


def fingerprints(clang_tidy, build):
    """Path of each source in the build -> what decides clang-tidy's findings in it."""
    version = subprocess.run([clang_tidy, "--version"], check=True, capture_output=True).stdout
    includes = includes_by_object(build)
    hashes = {}
    for command in compile_commands(build):
        source = pathlib.Path(os.path.normpath(build / command["file"]))
        fingerprint = hashes.setdefault(source, hashlib.sha256(version + settings_of(source)))
        fingerprint.update(command["command"].encode())
        for path in includes.get(command["output"], [source]):
            fingerprint.update(digest_of(path))
    return {source: fingerprint.hexdigest() for source, fingerprint in hashes.items()}


def passes(clang_tidy, build, source, mark):
    if mark.exists():
        return True
    try:
        done = subprocess.run([clang_tidy, "--quiet", "-p", mark.parent, source], capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print(f"{source}: clang-tidy took longer than {SECONDS_MAX} s", flush=True)
        return False
    if done.returncode == 0:
        mark.touch()
    else:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def main():
    clang_tidy, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    marks = build / "tidy"
    marks.mkdir(exist_ok=True)
    (marks / "compile_commands.json").write_text(json.dumps(compile_commands(build)))
    known = fingerprints(clang_tidy, build)
    sources = sources_to_check([pathlib.Path(path).resolve() for path in sys.argv[3:]], includes_by_source(build))
    strangers = [str(source) for source in sources if source not in known]
    if strangers:
        print(f"{build.name} does not compile, so clang-tidy cannot see:", *strangers)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        passed = list(workers.map(lambda source: passes(clang_tidy, build, source, marks / known[source]),
                                  [source for source in sources if source in known]))
    print(f"clang-tidy: {passed.count(True)} sources pass, {passed.count(False)} do not")
    return 0 if all(passed) else 1


sys.exit(main())
