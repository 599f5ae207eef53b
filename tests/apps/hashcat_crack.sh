#!/usr/bin/env bash
# hashcat finds the five lower-case letters behind one MD5 hash, which only a right kernel can.
source "$(dirname "$0")/app.sh"
need hashcat hashcat

word=dunes
hash=$(printf %s "$word" | md5sum | cut -d' ' -f1)
capture hashcat --hash-type 0 --attack-mode 3 --opencl-device-types 1,2,3 --potfile-disable --optimized-kernel-enable \
    --runtime 120 --session polder "$hash" '?l?l?l?l?l' || fail "hashcat exited with an error"
expect "^$hash:$word$"
expect '^Status\.+: Cracked$'
refuse 'self-test failed'
