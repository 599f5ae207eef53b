#!/usr/bin/env bash
# clinfo asks everything a platform and its devices can be asked: every answer is there and none is an error.
source "$(dirname "$0")/app.sh"
need clinfo clinfo

capture clinfo || fail "clinfo exited with an error"
expect '^ *Platform Name +Polder$'
expect '^ *Platform Version +OpenCL 3\.1 '
expect '^Number of devices +[1-9]'
expect '^ *Device Name +[^ ]'
refuse '<.*: get |error -?[0-9]|CL_INVALID|[Bb]ad value'

# The machine-readable form asks in another way.
capture clinfo --raw --offline || fail "clinfo --raw exited with an error"
# Devices whose own compiler lacks something that OpenCL 3.1 demands report 3.0.
if [[ ${POCL_DEVICES-} == proxy ]]; then
    expect 'CL_DEVICE_VERSION +OpenCL 3\.0 '
else
    expect 'CL_DEVICE_VERSION +OpenCL 3\.1 '
fi
refuse '<.*: get |error -?[0-9]|CL_INVALID'
