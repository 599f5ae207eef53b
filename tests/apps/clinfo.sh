#!/usr/bin/env bash
# clinfo asks everything a platform and its devices can be asked: every answer is there and none is an error.
source "$(dirname "$0")/app.sh"
need clinfo clinfo

capture clinfo || fail "clinfo exited with an error"
expect '^ *Platform Name +Polder$'
expect '^ *Platform Version +OpenCL 3\.0 '
expect '^Number of devices +[1-9]'
expect '^ *Device Name +[^ ]'
refuse '<.*: get |error -?[0-9]|CL_INVALID|[Bb]ad value'

# The machine-readable form asks in another way.
capture clinfo --raw --offline || fail "clinfo --raw exited with an error"
expect 'CL_DEVICE_VERSION +OpenCL 3\.0 '
refuse '<.*: get |error -?[0-9]|CL_INVALID'
