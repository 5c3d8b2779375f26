#!/bin/sh
# Stand-in for enroot's hook of this name: nothing while NVIDIA_VISIBLE_DEVICES is unset or void, else nvidia-container-cli.
[ -n "${NVIDIA_VISIBLE_DEVICES:-}" ] && [ "$NVIDIA_VISIBLE_DEVICES" != void ] || exit 0
command -v nvidia-container-cli >/dev/null || { echo "Command not found: nvidia-container-cli, see NVIDIA's Container Toolkit" >&2; exit 1; }
exec nvidia-container-cli --user configure --no-cgroups --device="$NVIDIA_VISIBLE_DEVICES" --compute --utility "$ENROOT_ROOTFS"
