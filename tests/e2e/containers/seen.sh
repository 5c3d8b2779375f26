#!/bin/sh
# What a container has of its node, in one line: GPUs whose files can be opened, the driver's libraries, RDMA devices, /scratch. The container
# has nothing but busybox: built-in commands of its shell.
gpus=0 libraries=0 rdma=0 scratch=no
while (: </dev/nvidia$gpus) 2>/dev/null; do gpus=$((gpus + 1)); done
for name in libcuda.so.1 libnvidia-ml.so.1; do
  for folder in /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu /.singularity.d/libs; do
    if [ -e $folder/$name ]; then libraries=$((libraries + 1)); break; fi
  done
done
while [ -c /dev/infiniband/uverbs$rdma ]; do rdma=$((rdma + 1)); done
if [ -e /scratch/of-the-node ]; then scratch=yes; fi
echo "gpus=$gpus libraries=$libraries rdma=$rdma scratch=$scratch"
