#!/usr/bin/env bash
# darktable, which takes no device that is a processor, on the discrete device: an exported picture against the one that it computes
# itself on the processor.
source "$(dirname "$0")/app.sh"
need darktable-cli darktable
need ffmpeg ffmpeg
ffmpeg -hide_banner -loglevel error -f lavfi -i testsrc2=size=640x480 -frames:v 1 "$scratch/in.png"

# export_picture NAME OPTION…
export_picture() {
    local name=$1
    shift
    capture darktable-cli "$scratch/in.png" "$scratch/$name.png" --core "$@" -d opencl -d perf \
        --configdir "$scratch/$name" --library :memory: || fail "darktable-cli exited with an error"
}
export_picture processor --disable-opencl
refuse 'on GPU'
export_picture device --conf opencl=TRUE
expect 'OpenCL 3\.[0-9] Polder'
expect 'input color profile.*on GPU'
expect 'output color profile.*on GPU'
refuse 'CL_[A-Z_]*(FAIL|INVALID|OUT_OF)|aborted'
capture ffmpeg -hide_banner -i "$scratch/processor.png" -i "$scratch/device.png" -filter_complex psnr -f null - || fail "no comparison"
ratio=$(sed -n 's/.*PSNR.* average:\([0-9.a-z]*\).*/\1/p' "$output")
[[ $ratio == inf ]] || awk -v is="$ratio" 'BEGIN { exit !(is >= 55) }' || fail "$ratio dB between the pictures"
