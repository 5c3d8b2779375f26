#include "kernels/together/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"
#include "base/record.h"

namespace muster {

namespace training {
MUSTER_RECORD(Shape, model, heads, sequence, layers)
}

namespace together {

MUSTER_RECORD(Member, name, address, port)
MUSTER_RECORD(LoadOptions, seconds, max_bytes, flat(shape), threads, gpus, algorithm, root, flip_rank,
              patience)
MUSTER_RECORD(Work, lenient, token, rank, members, load, nccl_port, meet_seconds, deadline_seconds,
              flat(options))

namespace {

constexpr double kLongestSeconds = 7 * 86400;
constexpr size_t kLongestName = 256, kMostMembers = 0xffff;
constexpr const char* kLoads[] = {"allreduce", "training", "nccl", "gpu-training"};

bool is_time(double seconds) { return seconds > 0 && seconds <= kLongestSeconds; }

// Rejects work that would fail later, or would take too many resources of this node.
Status check(const Work& work) {
  const auto& o = work.options;
  if (work.members.empty() || work.members.size() > kMostMembers)
    return fail(Code::invalid, "work.members: expected a list of members");
  for (const Member& member : work.members)
    if (member.name.size() > kLongestName) return fail(Code::invalid, "work.members: a name is too long");
  if (std::none_of(std::begin(kLoads), std::end(kLoads),
                   [&](const char* known) { return work.load == known; }))
    return fail(Code::invalid, fmt::format("work.load: unknown load '{}'", work.load.substr(0, 64)));
  if (work.rank < 0 || static_cast<size_t>(work.rank) >= work.members.size())
    return fail(Code::invalid, "work.rank: no member has this rank");
  if (work.token.size() < 16 || work.token.size() > 256)
    return fail(Code::invalid, "work.token: expected 16 to 256 characters");
  for (const double seconds : {o.seconds, o.patience, work.meet_seconds, work.deadline_seconds})
    if (!is_time(seconds))
      return fail(Code::invalid, "work: every duration must be above zero and at most a week");
  if (o.max_bytes < sizeof(double)) return fail(Code::invalid, "work.max_bytes: expected at least 8");
  if (o.gpus < 0 || o.gpus > 1024 || o.algorithm.size() > 64 || o.root.size() > 4096)
    return fail(Code::invalid, "work: `gpus`, `algorithm` or `root` is out of range");
  if (work.load.find("training") != std::string::npos)
    if (const char* why = training::unfit(o.shape); *why) return fail(Code::invalid, why);
  const bool on_gpus = work.load == "nccl" || work.load == "gpu-training";
  if (on_gpus && o.gpus == 0) return fail(Code::invalid, "work.gpus: expected the number of GPUs per node");
  return Ok{};
}

}  // namespace

Json to_json(const Work& work) { return record_json(work); }

Result<Work> work_from_json(const Json& json) {
  TRY(auto out, read_record<Work>(json, "work"));
  TRY_(check(out));
  return out;
}

std::string line_of(const Json& json) { return dump_json(json) + "\n"; }

}  // namespace together
}  // namespace muster
