# Sourced by the tests of this folder, which run programs that nobody here wrote on Polder, through the ICD loader.

set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Caches and settings of the programs themselves stay out of the user's home and out of the next test.
export HOME=$scratch XDG_CACHE_HOME=$scratch/cache XDG_DATA_HOME=$scratch/data XDG_CONFIG_HOME=$scratch/config

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# need PROGRAM PACKAGE: without the program the test is skipped; in CI, which installs them all, it fails.
need() {
    command -v "$1" >/dev/null && return
    [[ ${CI-} == true ]] && fail "$1 is not installed (package $2)"
    echo "skipped: $1 is not installed (package $2)"
    exit 77
}

# Output of the program under test, without colours and progress lines, shown and kept in $output.
output=$scratch/output
capture() {
    local status=0
    "$@" >"$scratch/raw" 2>&1 || status=$?
    sed -e 's/\x1b\[[0-9;]*[a-zA-Z]//g' -e 's/.*\r\(.\)/\1/' "$scratch/raw" >"$output"
    cat "$output"
    return $status
}

# The program ran on Polder and on nothing else.
expect() { grep -qE -- "$1" "$output" || fail "nothing in the output matches: $1"; }
refuse() { ! grep -E -- "$1" "$output" || fail "the lines above should not be there"; }

# expect_passed TESTS: pytest's last line counts at least as many.
expect_passed() {
    local passed
    passed=$(sed -n 's/^\(.*, \)\?\([0-9]*\) passed.*/\2/p' "$output")
    ((${passed:-0} >= $1)) || fail "${passed:-0} tests passed, at least $1 expected"
}
