#!/usr/bin/env bash
# hashcat's benchmark of MD5: compiles its kernels, passes its self-test, and reports a speed.
source "$(dirname "$0")/app.sh"
need hashcat hashcat

capture hashcat --benchmark --hash-type 0 --opencl-device-types 1,2,3 || fail "hashcat exited with an error"
expect 'Platform #1 \[.*\]'
expect '^Speed\.#1\.+: +[0-9.]+ [kMG]?H/s'
refuse 'self-test failed|CL_[A-Z_]+$|clBuildProgram|[eE]rror'
