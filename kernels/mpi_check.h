// muster-mpi-check: tests of several nodes together over MPI. One program (kernels/program_mpi.cc), one file
// per load.
//
// A program of its own: it must load libmpi.so.40 of Debian 12 and 13, so it uses MPI's C interface only and
// brings its C++ runtime along. What it takes of kernels/ knows nothing of MPI, which muster-accept must not
// need; its JSON has the same envelope (kernels/kernels.h). Functions are called on every rank; what they
// return counts on rank 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/training/block.h"

namespace muster::mpi {

using Json = nlohmann::json;

struct Options {
  std::string load = "allreduce";  // allreduce, training, nccl, gpu-training
  double seconds = 1.0;            // budget of the whole load
  size_t max_bytes = 256 << 10;    // all-reduce: largest message
  training::Shape shape = {};      // training
  size_t threads = 0;              // training: per rank; 0: as many as the process may use
  std::string root = {};  // training: a folder that plays each node's /sys (RANK below it where that is
                          // there): simulated energy
  int flip_rank = -1;     // flips one bit there, to show that it is seen
  std::string program = "/usr/lib/muster/muster-accept-gpu";  // of GPU loads
  std::string network = {};    // GPU loads: CIDR in which the first node listens; empty: any
  std::string algorithm = {};  // GPU loads: NCCL_ALGO
  int gpus = 0;                // GPU loads: of every node
};

Json run_allreduce(const Options& options, int rank, int ranks);
Json run_training(const Options& options, int rank, int ranks);
Json run_nccl(const Options& options, int rank, int ranks);
Json run_gpu_training(const Options& options, int rank, int ranks);

// 0 for none; of an even number the upper one: a time or a rate that was measured.
double median(std::vector<double> values);
// 1, 2, 4 ... and all: the numbers of nodes of a scaling study.
std::vector<int> node_counts(int most);
std::vector<std::string> gather_hosts(int ranks);
// At most so many characters of each.
std::vector<std::string> gather_texts(const std::string& mine, size_t length, int ranks);
std::vector<long long> gather_counts(long long mine, int ranks);
// The measurement without its own metrics: who saw something wrong (`words` with {} for the count), on which
// hosts it ran.
Json envelope(const char* check, const std::vector<std::string>& hosts, const std::vector<long long>& wrong,
              const std::string& words);

}  // namespace muster::mpi
