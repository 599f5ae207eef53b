#!/usr/bin/env bash
# gpyfft's own tests of clFFT, against NumPy: plans, batches, strides, user callbacks in the kernels.
source "$(dirname "$0")/app.sh"
tests=$(/usr/bin/python3 -c 'import gpyfft, os; print(os.path.join(os.path.dirname(gpyfft.__file__), "test"))' 2>/dev/null) || {
    [[ ${CI-} == true ]] && fail "gpyfft is not installed (package python3-gpyfft)"
    echo "skipped: gpyfft is not installed (package python3-gpyfft)"
    exit 77
}
export PYOPENCL_NO_CACHE=1
capture /usr/bin/python3 -m unittest discover -s "$tests" -t "$(dirname "$(dirname "$tests")")" || fail "unittest says so"
expect '^Ran [1-9][0-9]+ tests'
refuse 'skipped='
