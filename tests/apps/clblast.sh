#!/usr/bin/env bash
# clblast.sh ROUTINE SECONDS: CLBlast's own test of one BLAS routine, against the host's BLAS. The longer ones take
# minutes anywhere, so what was tested within SECONDS is judged: something was, and nothing of it was wrong.
source "$(dirname "$0")/app.sh"
routine=$1 seconds=$2
program=clblast_test_$routine
need "$program" clblast-tests

# test_for SECONDS: sets `marks`. Legend: ':' correct result, '.' correct error; 'X' wrong result, '/' wrong error, '\' does not compile.
test_for() {
    local status=0
    capture timeout "$1" stdbuf -o0 "$program" -platform 0 -device 0 || status=$?
    [[ $status == 0 || $status == 124 ]] || fail "$program exited with $status"
    marks=$(grep -E '^ *[]:.X/\\o-]+$' "$output" || true)
}

test_for "$seconds"
# On a busy machine another implementation may need that long for the first kernels alone. It keeps them, so that more time is enough.
[[ $marks == *:* ]] || test_for $((seconds * 4))
[[ $marks == *:* ]] || fail "not one test was completed"
[[ $marks != *[X/\\]* ]] || fail "wrong results, wrong errors or kernels that do not compile: see the marks"
refuse '[1-9][0-9]* test\(s\) failed|[1-9][0-9]* failed'
printf '%s: %s correct\n' "$routine" "$(tr -cd : <<<"$marks" | wc -c)"
