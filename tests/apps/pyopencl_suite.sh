#!/usr/bin/env bash
# pyopencl_suite.sh TESTS FILE… [OPTION OF PYTEST…]: these files of the tests in PyOpenCL's source package; at least TESTS must pass, and none may
# fail.
source "$(dirname "$0")/app.sh"
least=$1 tests=${POLDER_PYTHON_APPS-}/pyopencl-tests
shift
[[ -d $tests ]] || {
    [[ ${CI-} == true ]] && fail "$tests is missing"
    echo "skipped: the source package of PyOpenCL is not installed (PyPI; tools/setup.sh)"
    exit 77
}
export PYTHONPATH=$POLDER_PYTHON_APPS
cp -r "$tests" "$scratch/tests"
cd "$scratch/tests"
# test_get_info reads an attribute that PyOpenCL's images do not have.
capture python3 -m pytest -q -p no:cacheprovider -k 'not test_get_info' "$@" || fail "pytest says so"
expect_passed "$least"
