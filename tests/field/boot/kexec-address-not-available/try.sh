#!/bin/bash
# The real agent's child, as prepare_kexec() starts it, under a filter that answers for the kernel: exit status 4
# (the boot loader is tried) or 1 (the order may be repeated).
set -eu
agent=$BUILD/muster-agent
[ -x "$agent" ] || { echo "there is no $agent"; exit 77; }
command -v gcc >/dev/null || { echo "gcc is not installed"; exit 77; }
gcc -o "$WORK/failcall" "$CASE/failcall.c"
echo kernel >"$WORK/kernel"
echo initrd >"$WORK/initrd"
failed=0
try() { # errno, exit status expected
  local status=0
  printf '{"kernel":"%s","initrd":"%s","command_line":"quiet"}\n' "$WORK/kernel" "$WORK/initrd" |
    "$WORK/failcall" "$1" "$agent" kexec --stdin 2>/dev/null || status=$?
  [ "$status" = "$2" ] || { echo "errno $1: exit status $status, expected $2"; failed=1; }
}
for denied in 1 8 12 22 38 75 99 129; do try "$denied" 4; done
for later in 4 11 16; do try "$later" 1; done
exit $failed
