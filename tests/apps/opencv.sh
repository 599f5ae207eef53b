#!/usr/bin/env bash
# opencv.sh PROGRAM: runs opencv.cpp, and makes sure that its operations ran as kernels: OpenCV takes the host's path, and
# says little, when OpenCL fails.
source "$(dirname "$0")/app.sh"

export POCL_DEBUG=compiler POCL_KERNEL_CACHE=0
# Its own cache of programs would be /var/tmp's, and of another Polder. Processors and accelerators it takes only when asked to.
export OPENCV_OPENCL_CACHE_ENABLE=0 OPENCV_OPENCL_DEVICE='Polder:CPU|ACCELERATOR|GPU:' OPENCV_LOG_LEVEL=ERROR
capture "$1" || fail "results differ from the host's"
for kernel in KF RGB2Gray RGB2HSV BGR2Lab boxFilter medianFilter5 row_filter col_filter sobel3 morph threshold resizeLN \
    resizeAREA_FAST warpAffine pyrDown arithm_flip_cols transpose fft_multi_radix_rows reduce corner matchTemplate_CCORR_NORMED; do
    expect "kernel $kernel:"
done
refuse 'OpenCL error'
