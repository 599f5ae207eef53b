#!/usr/bin/env bash
# GEGL, the pipeline of GIMP's pictures: operations that it computes with OpenCL, one by one and in a row, against the same operations on the
# processor. Each run with OpenCL starts with an empty cache, so the cached programs show that Polder computed and GEGL did not go back to
# the processor.
source "$(dirname "$0")/app.sh"
need gegl gegl
need gegl-imgcmp gegl
need ffmpeg ffmpeg
ffmpeg -hide_banner -loglevel error -f lavfi -i testsrc2=size=480x360 -frames:v 1 "$scratch/in.png"

# compare NAME PROGRAMS OPERATION…: at least PROGRAMS of OpenCL are built, and the pictures are equal to the eye (gegl-imgcmp's measure).
compare() {
    local name=$1 least=$2 programs
    shift 2
    GEGL_USE_OPENCL=no capture gegl "$scratch/in.png" -o "$scratch/processor.png" -- "$@" >/dev/null || fail "$name: gegl on the processor"
    rm -rf "$scratch/programs" "$scratch/device.png"
    mkdir "$scratch/programs"
    POCL_CACHE_DIR=$scratch/programs GEGL_USE_OPENCL=$kind capture gegl "$scratch/in.png" -o "$scratch/device.png" -- "$@" >/dev/null || {
        cat "$output"
        fail "$name: gegl with OpenCL"
    }
    programs=$(find "$scratch/programs" -type f | wc -l)
    ((programs >= least)) || fail "$name: $programs programs were built, at least $least expected"
    capture gegl-imgcmp "$scratch/processor.png" "$scratch/device.png" >/dev/null || {
        cat "$output"
        fail "$name: the pictures differ"
    }
    echo "$name: $programs programs, equal pictures"
}

# GEGL asks for devices of one kind.
kind=cpu
[[ ${POCL_DEVICES-} != discrete ]] || kind=accelerator

compare box-blur 4 box-blur radius=5
compare bilateral-filter 3 bilateral-filter blur-radius=4 edge-preservation=8
compare brightness-contrast 3 brightness-contrast contrast=1.5 brightness=0.1
compare edge-laplace 3 edge-laplace
compare high-pass 3 high-pass
compare noise-hurl 3 noise-hurl
compare stretch-contrast 4 stretch-contrast
compare shadows-highlights 3 shadows-highlights shadows=40 highlights=-30
compare pipeline 10 exposure exposure=0.3 box-blur radius=2 color-temperature intended-temperature=4500 levels in-low=0.05 in-high=0.9 \
    pixelize size-x=3 size-y=5 noise-hsv hue-chroma hue=20 posterize levels=12 opacity value=0.8 value-invert
