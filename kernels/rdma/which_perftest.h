// Which perftest measures: the host's own, or the one that muster carries (base/perftest_files.h). Both sides
// of a test must run one that exchanges the same data, and versions differ in it. So the host's own is used
// where both sides have the same version of it, since it may have been built for the adapters there (with
// CUDA); else the carried one where both sides can start it; else each side uses what it has.
//
// The carried programs load the host's libibverbs and providers, which have to match its kernel and adapters.
// Thread safety: value types; stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/rdma/rdma.h"
#include "sys/os.h"

namespace muster::kernels {

// Paths on this host of the perftest that muster carries.
struct CarriedPerftest {
  std::string bandwidth = {}, latency = {};
  std::vector<std::string> libraries = {};  // preloaded: a file in memory cannot have a library's name
  bool present() const { return !bandwidth.empty(); }
  // The words that start its program.
  std::vector<std::string> words(PerfTest test) const;
};
// `paths`: those of kPerftestFiles, in that order. If there are none, they are searched in `folder` and in
// perftest/ there; it is often run as root, so files there that a different user can have put there are not
// used. Not present if a file is missing.
CarriedPerftest carried_perftest(const std::vector<std::string>& paths, const std::string& folder);

struct Perftest {
  // The versions that they print, "unknown" if they print none; "": not there, or it does not start.
  std::string own = {}, carried = {};
  std::string help = {};  // of the host's own: its options
  CarriedPerftest files = {};
  std::string problem = {};  // why neither can be used, and what helps; "": one can
  // The words that start the test's program on this side. `wanted`: both sides agreed on the
  // carried one.
  std::vector<std::string> words(PerfTest test, bool wanted) const;
  // "6.06 of this host", "6.06 carried by muster"
  std::string text(bool wanted) const;

 private:
  bool uses_carried(bool wanted) const { return !this->carried.empty() && (wanted || own.empty()); }
};
Perftest find_perftest(Process& process, const CarriedPerftest& files);

// What each side announces. An older muster-accept announces nothing, and has its host's own.
Json to_json(const Perftest& perftest);
// True if both sides use the carried one. Never for GPU memory, which it cannot reach.
bool agree_on_carried(const Perftest& own, const Json& partner, bool gpu_memory);

}  // namespace muster::kernels
