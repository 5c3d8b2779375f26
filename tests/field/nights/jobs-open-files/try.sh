#!/bin/bash
. "$SRC/tests/field/nights/limits.sh"
ulimit -Sn 16384
expect "a job has the session's open files" is 16384 slurm srun sh -c 'ulimit -Sn'
expect "it may not have more" is 16384 slurm srun sh -c 'ulimit -Hn'
expect "locked memory is the node's" is "$memory" slurm srun sh -c 'ulimit -Sl'
exit $wrong
