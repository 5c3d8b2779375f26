#!/bin/sh
# Stand-in for enroot's extra hook of this name: the variables and the folder of the PMIx server of a job's step.
[ -n "${PMIX_RANK:-}" ] && [ -n "${PMIX_SERVER_TMPDIR:-}" ] || exit 0
env | grep -E '^(PMIX|SLURM|OMPI)_' >>"$ENROOT_ENVIRON"
echo "$PMIX_SERVER_TMPDIR $PMIX_SERVER_TMPDIR none x-create=dir,bind,rw" | enroot-mount --root "$ENROOT_ROOTFS" -
