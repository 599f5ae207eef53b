#!/usr/bin/env bash
# clpeak measures memory, arithmetic, transfers and launches: every row it prints must hold a positive figure.
source "$(dirname "$0")/app.sh"
need clpeak clpeak

capture clpeak --platform 0 --device 0 --global-bandwidth --compute-sp --transfer-bandwidth --kernel-latency ||
    fail "clpeak exited with an error"
expect '^Platform: Polder'
for row in 'float' 'float4' 'float16' 'enqueueWriteBuffer' 'enqueueReadBuffer' 'memcpy from mapped ptr' \
    'memcpy to mapped ptr'; do
    expect "^ *$row +: [0-9.]*[1-9]"
done
# Nothing is copied, and clpeak divides by whole microseconds: a bandwidth of "inf" is what no time at all gives.
for row in 'enqueueMapBuffer\(for read\)' 'enqueueUnmap\(after write\)'; do
    expect "^ *$row +: ([0-9.]*[1-9]|inf)"
done
expect '^ *Kernel launch latency : [0-9.]*[1-9]'
refuse 'FAILED|[eE]rror|failed|: (0\.00|nan)$'
