#!/bin/bash
RELEASES=13
. "$SRC/tests/field/nights/stack.sh"
expect "the step" step accounting "before the database starts"
pool() { # GIB -> MIB
  echo "MemTotal:       $(($1 * 1048576)) kB" > "$WORK/meminfo"
  mount --bind "$WORK/meminfo" "$SLURM_ROOT/proc/meminfo"
  slurm /etc/mysql/muster-before-start
  slurm mariadbd --print-defaults | grep -o 'innodb_buffer_pool_size=[0-9]*M' | tail -n 1
  umount "$SLURM_ROOT/proc/meminfo"
}
expect "1 GiB: half" is "*=512M" pool 1
expect "6 GiB: half" is "*=3072M" pool 6
expect "64 GiB: Slurm's least" is "*=4096M" pool 64
expect "512 GiB: 5 %" is "*=26214M" pool 512
printf '[mariadbd]\ninnodb_buffer_pool_size = 100M\n' > "$SLURM_ROOT/etc/mysql/mariadb.conf.d/70-own.cnf"
expect "an operator's own size" is "*=100M" pool 512
exit $wrong
