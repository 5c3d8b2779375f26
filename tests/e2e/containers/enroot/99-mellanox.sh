#!/bin/sh
# Stand-in for enroot's hook of this name: nothing while MELLANOX_VISIBLE_DEVICES is unset or void, else all RDMA devices of the node.
[ -n "${MELLANOX_VISIBLE_DEVICES:-}" ] && [ "$MELLANOX_VISIBLE_DEVICES" != void ] || exit 0
[ -d /dev/infiniband ] && [ ! -d "$ENROOT_ROOTFS/dev/infiniband" ] || exit 0
echo "/dev/infiniband /dev/infiniband none x-create=dir,bind,rw" | enroot-mount --root "$ENROOT_ROOTFS" -
