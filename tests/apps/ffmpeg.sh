#!/usr/bin/env bash
# ffmpeg's OpenCL filters, which read and write images, against its filters of the same name on the processor. Those that only move pixels or
# choose among them must be equal; the others round differently, and some treat the border of the picture differently.
source "$(dirname "$0")/app.sh"
need ffmpeg ffmpeg

# compare NAME FORMAT DECIBELS OPENCL PROCESSOR: the signal-to-noise ratio of the first plane; `inf` when all is equal.
compare() {
    local graph="[0]format=$2,split[a][b];[a]hwupload,$4,hwdownload,format=$2[x];[b]$5,format=$2[y];[x][y]psnr"
    capture ffmpeg -hide_banner -loglevel info -init_hw_device opencl=device:0.0 -filter_hw_device device \
        -f lavfi -i testsrc2=size=320x240:rate=10:duration=0.3 -filter_complex "$graph" -f null - \
        >/dev/null || {
        cat "$output"
        fail "$1: ffmpeg exited with an error"
    }
    local ratio
    ratio=$(sed -n 's/.*PSNR [yr]:\([0-9.a-z]*\).*/\1/p' "$output")
    echo "$1: $ratio dB"
    [[ $ratio == inf ]] || awk -v is="$ratio" -v least="$3" 'BEGIN { exit !(is >= least) }' ||
        fail "$1: $ratio dB, at least $3 expected"
}

sharpen='0 -1 0 -1 5 -1 0 -1 0'
sharpen="=$sharpen:$sharpen:$sharpen:$sharpen"
equal=1000
compare dilation yuv420p $equal dilation_opencl dilation
compare erosion yuv420p $equal erosion_opencl erosion
compare pad yuv420p $equal pad_opencl=360:300:10:10 pad=360:300:10:10
compare transpose yuv420p $equal transpose_opencl=1 transpose=1
compare convolution yuv420p $equal "convolution_opencl$sharpen" "convolution$sharpen"
compare sobel yuv420p 60 sobel_opencl sobel
compare prewitt yuv420p 60 prewitt_opencl prewitt
compare roberts yuv420p 60 roberts_opencl roberts
compare boxblur yuv420p 50 boxblur_opencl=3 boxblur=3
compare avgblur yuv420p 45 avgblur_opencl=3 avgblur=3
compare unsharp yuv420p 40 unsharp_opencl=lx=5:la=1.5 unsharp=lx=5:la=1.5
compare nlmeans yuv420p 35 nlmeans_opencl=s=4 nlmeans=s=4
