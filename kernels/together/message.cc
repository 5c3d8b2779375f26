#include "kernels/together/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json_dump.h"

namespace muster::together {
namespace {

constexpr double kLongestSeconds = 7 * 86400;
constexpr size_t kLongestName = 256, kMostMembers = 0xffff;
constexpr const char* kLoads[] = {"allreduce", "training", "nccl", "gpu-training"};

Result<std::vector<Member>> members_from_json(const Json& json) {
  if (!json.is_array() || json.empty() || json.size() > kMostMembers)
    return fail(Code::invalid, "work.members: expected a list of members");
  std::vector<Member> out;
  for (const Json& item : json) {
    Member member;
    JsonReader r(item, "work.members");
    r.get("name", member.name);
    r.get("address", member.address);
    r.get("port", member.port);
    TRY_(r.finish());
    if (member.name.size() > kLongestName) return fail(Code::invalid, "work.members: a name is too long");
    out.push_back(std::move(member));
  }
  return out;
}

bool is_time(double seconds) { return seconds > 0 && seconds <= kLongestSeconds; }

// Rejects work that would fail later, or would take too many resources of this node.
Status check(const Work& work) {
  const auto& o = work.options;
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

Json to_json(const Work& work) {
  const auto& o = work.options;
  Json members = Json::array();
  for (const auto& m : work.members)
    members.push_back({{"name", m.name}, {"address", m.address}, {"port", m.port}});
  return {{"token", work.token},
          {"rank", work.rank},
          {"members", members},
          {"load", work.load},
          {"nccl_port", work.nccl_port},
          {"meet_seconds", work.meet_seconds},
          {"deadline_seconds", work.deadline_seconds},
          {"seconds", o.seconds},
          {"max_bytes", o.max_bytes},
          {"model", o.shape.model},
          {"heads", o.shape.heads},
          {"sequence", o.shape.sequence},
          {"layers", o.shape.layers},
          {"threads", o.threads},
          {"gpus", o.gpus},
          {"algorithm", o.algorithm},
          {"root", o.root},
          {"flip_rank", o.flip_rank},
          {"patience", o.patience}};
}

Result<Work> work_from_json(const Json& json) {
  Work out;
  auto& o = out.options;
  JsonReader r(json, "work");
  r.allow_unknown();
  r.get("token", out.token);
  r.get("rank", out.rank);
  r.get("load", out.load);
  r.get("nccl_port", out.nccl_port);
  r.get("meet_seconds", out.meet_seconds);
  r.get("deadline_seconds", out.deadline_seconds);
  r.get("seconds", o.seconds);
  r.get("max_bytes", o.max_bytes);
  r.get("model", o.shape.model);
  r.get("heads", o.shape.heads);
  r.get("sequence", o.shape.sequence);
  r.get("layers", o.shape.layers);
  r.get("threads", o.threads);
  r.get("gpus", o.gpus);
  r.get("algorithm", o.algorithm);
  r.get("root", o.root);
  r.get("flip_rank", o.flip_rank);
  r.get("patience", o.patience);
  const Json members = r.raw("members");
  TRY_(r.finish());
  TRY(out.members, members_from_json(members));
  TRY_(check(out));
  return out;
}

std::string line_of(const Json& json) { return dump_json(json) + "\n"; }

}  // namespace muster::together
