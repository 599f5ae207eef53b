"""What a machine can see of style beyond formatting.

Run by tools/check; prints every offence and exits with 1 when there is one.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINES_MAX = 500
OPENING_FROM = 100  # a longer source says at its beginning what it does

# Lower layers must not include higher ones: api -> runtime -> memory -> driver interface <- devices, base beneath all.
MAY_NOT_INCLUDE = {
    "lib/base/": ("bufalloc", "memory", "compiler", "runtime", "api", "devices"),
    "lib/bufalloc/": ("base", "memory", "compiler", "runtime", "api", "devices", "polder/driver"),
    "lib/memory/": ("compiler", "runtime", "api", "devices"),
    "lib/compiler/": ("memory", "runtime", "api", "devices"),
    "devices/": ("memory", "compiler", "runtime", "api"),
    "lib/runtime/": ("api",),
}


# Headers of others that only one folder may see, and what the programs beside the library may not see of it.
ONLY_IN = {
    r"(llvm|clang|llvm-c|clang-c)/": ("lib/compiler/", "tests/"),
    r"(cuda|cudaGL|nvrtc)\.h": ("devices/cuda/", "tests/"),
}
# The library. Its headers and sources may include each other only in one direction, and never in a circle.
LAYERED = ("lib/", "devices/", "include/")
PUBLIC_ONLY = ("apps/", "bindings/", "examples/")  # they include CL/ alone of ours
OURS = ("base", "bufalloc", "memory", "compiler", "runtime", "api", "devices", "kernel", "polder")


def sources():
    """C++ sources; those in OpenCL C have rules of their own."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [path for path in listed if (ROOT / path).exists() and not path.startswith("lib/kernel/cl/")]


def offences(path, text):
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path}: {len(lines)} lines, at most {LINES_MAX}: split it by thing"
    if path.startswith(LAYERED) and not text.startswith(("//", "/*")) and (path.endswith(".h") or len(lines) > OPENING_FROM):
        yield f"{path}: opens without a comment that says what it is for" + ("" if path.endswith(".h") else " and how it works")
    if path.endswith(".h") and "#pragma once" not in text and "#ifndef" not in text:
        yield f"{path}: a header without #pragma once"
    for folder, layers in MAY_NOT_INCLUDE.items():
        if path.startswith(folder):
            for number, line in enumerate(lines, 1):
                if re.match(rf"\s*#include <({'|'.join(layers)})/", line):
                    yield f"{path}:{number}: includes a layer it must not know: {line.strip()}"
    for header, folders in ONLY_IN.items():
        if not path.startswith(folders):
            for number, line in enumerate(lines, 1):
                if re.match(rf"\s*#include [<\"]{header}", line):
                    yield f"{path}:{number}: only {folders[0]} includes this: {line.strip()}"
    if path.startswith(PUBLIC_ONLY):
        for number, line in enumerate(lines, 1):
            if re.match(rf"\s*#include <({'|'.join(OURS)})/", line):
                yield f"{path}:{number}: uses the public headers alone: {line.strip()}"
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield f"{path}:{number}: do it, or name it in the documentation"
        if "\t" in line or line != line.rstrip():
            yield f"{path}:{number}: a tab or trailing space"
    yield from unclear_words(path, [(number, comment.group()) for number, line in enumerate(lines, 1)
                                    if (comment := re.search(r"//.*", line))])




def includes(paths):
    """For each of `paths`, those that it includes. An included name is looked for beside the source, in each folder named
    `include`, and from each folder of LAYERED downwards: all include directories of the build are among these."""
    known = set(paths)
    by_end = {}
    for path in paths:
        parts = path.split("/")
        for start in range(len(parts)):
            by_end.setdefault("/".join(parts[start:]), []).append(path)
    found = {path: set() for path in paths}
    for path in paths:
        for name in re.findall(r'^\s*#\s*include [<"]([^>"]+)[>"]', (ROOT / path).read_text(), re.MULTILINE):
            beside = str(pathlib.PurePosixPath(path).parent / name)
            if beside in known:
                found[path].add(beside)
            elif len(candidates := by_end.get(name, [])) == 1:
                found[path].add(candidates[0])
    return found


def circle(graph):
    """One circle of a graph {node: nodes it points to} as a list of nodes, or an empty list."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node not in done:
            path.append(node)
            for following in sorted(graph.get(node, ())):
                if closed := visit(following):
                    return closed
            path.pop()
            done.add(node)
        return []

    for node in sorted(graph):
        if closed := visit(node):
            return closed
    return []


def circles(paths):
    """Circles of #include lines, between files and between folders."""
    files = includes([path for path in paths if path.startswith(LAYERED)])
    folders = {}
    for path, targets in files.items():
        folder = path.rpartition("/")[0]
        folders.setdefault(folder, set()).update(
            other for target in targets if (other := target.rpartition("/")[0]) != folder)
    for kind, graph in (("files", files), ("folders", folders)):
        if closed := circle(graph):
            yield f"{kind} that include each other in a circle: {' -> '.join(closed)}"


# Words that hide who does what, and the plain ones that comments and documents use instead.
UNCLEAR = {
    r"told": "reported, notified, recognized", r"whoever": "the thread, the caller", r"answers|answered": "returns, reports",
    r"lets? go of": "release", r"given up": "released", r"is had|are had": "exists, is allocated",
    r"stands? for": "is, means, replaces", r"graveyard": "deferred destruction",
    r"tells?": "reports, says", r"(some|no|every)body|everyone": "a thread, no command, all queues", r"in the midst": "inside, while",
    r"hand(s|ed)? out": "allocates, returns", r"carve[sd]?": "allocates, splits", r"(comes?|came) back": "returns, is freed",
    r"(taken?|takes) away": "evicted, removed", r"rungs?|ladder": "steps", r"honest": "exact",
}


def unclear_words(path, numbered):
    """The words of UNCLEAR in the (number, text) pairs of a file. Names in backquotes may have them."""
    for number, text in numbered:
        prose = re.sub(r"`[^`]*`", "", text)
        for word, instead in UNCLEAR.items():
            if found := re.search(rf"\b({word})\b", prose):
                yield f"{path}:{number}: '{found.group()}' is unclear: {instead}"


# What documentation names and this repository does not hold: Clang's headers, builds, and what is only generated.
NOT_OURS = re.compile(r"(include/)?opencl-c(-base)?\.h|build[\w-]*/.*|polder\.icd")
IS_A_PATH = re.compile(r"[\w.+-]+(/[\w.+-]+)+/?|[\w+-]+\.(h|cpp|cl|inc|md|py|build)")


def tracked():
    """Every file and folder, as git knows them; a source also stands for the program that is made of it."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    paths = {path for path in listed if (ROOT / path).exists()}
    folders = {str(folder) for path in paths for folder in pathlib.PurePosixPath(path).parents}
    return paths | folders | {path.removesuffix(".cpp") for path in paths}


def stale_names(document, known):
    """Paths in backquotes (whole, or as #include lines shorten them) and links to what is not there."""
    for number, line in enumerate((ROOT / document).read_text().splitlines(), 1):
        words = [word for quoted in re.findall(r"`([^`]+)`", line) for word in quoted.split()]
        for word in (word.rstrip("/") for word in words if IS_A_PATH.fullmatch(word) and not NOT_OURS.fullmatch(word)):
            if not any(path == word or path.endswith("/" + word) for path in known):
                yield f"{document}:{number}: names {word}, which does not exist"
        for target in re.findall(r"\]\(([^)#]+)", line):
            if "://" not in target and not ((ROOT / document).parent / target).exists():
                yield f"{document}:{number}: links to {target}, which does not exist"


def main():
    known = tracked()
    found = [offence for path in sources() for offence in offences(path, (ROOT / path).read_text())]
    found += circles(sources())
    documents = [path for path in sorted(known) if path.endswith(".md")]
    found += [offence for path in documents for offence in stale_names(path, known)]
    found += [offence for path in documents
              for offence in unclear_words(path, enumerate((ROOT / path).read_text().splitlines(), 1))]
    print("\n".join(found) if found else "style: nothing to object to")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
