#!/usr/bin/env bash
# python_suite.sh MODULE TESTS [MODULE OR OPTION OF PYTEST…]: the tests that a Python package brings along; at least TESTS must pass, and none
# may fail.
source "$(dirname "$0")/app.sh"
here=$(cd "$(dirname "$0")" && pwd)
module=$1 least=$2
shift 2
case $module in
dp*) apps=${POLDER_SYCL_APPS-} ;;
*) apps=${POLDER_PYTHON_APPS-} ;;
esac
export PYTHONPATH=$apps:$here PYOPENCL_NO_CACHE=1
python3 -c "import pytest, scipy, ${module%%.*}" 2>/dev/null || {
    [[ -n $apps ]] && fail "$module is not in $apps"
    echo "skipped: $module is not installed (PyPI; tools/setup.sh)"
    exit 77
}
cd "$scratch"
capture python3 -m pytest -q -p offline_images -p no:cacheprovider --pyargs "$module" "$@" || fail "pytest says so"
expect_passed "$least"
