#!/bin/sh
# SIMULATED GPU: the lab's stand-in for nvcc. It prints its version and compiles nothing.
if [ "$*" = --version ]; then
  echo "nvcc: NVIDIA (R) Cuda compiler driver (SIMULATED GPU: the lab's stand-in)"
  echo "Cuda compilation tools, release 13.0"
  exit 0
fi
echo "SIMULATED GPU: the lab's stand-in for nvcc compiles nothing" >&2
exit 1
