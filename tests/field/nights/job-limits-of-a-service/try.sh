#!/bin/bash
. "$SRC/tests/field/nights/limits.sh"
ulimit -Sn 128
ulimit -Sl 64
expect "a job has the node's open files" is 16384 slurm srun sh -c 'ulimit -Sn'
expect "and its locked memory" is "$memory" slurm srun sh -c 'ulimit -Sl'
exit $wrong
