#include "kernels/together/group_verbs.h"

#include <algorithm>

namespace muster::together {
namespace {

constexpr double kMostPatience = 60;

void add_here(Verb& app, GpuHere& here) {
  app.add_option("--program", &here.program, "path of muster-accept-gpu on this node, for GPU loads");
  app.add_option("--libs", &here.libs,
                 "folder with NCCL, cuBLASLt and network plug-ins (default: the system's usual folders)");
}

void declare_leader(Verb& app, GroupArguments& a) {
  auto& group = app.add_verb(
      "group", "run one load across several nodes, with this node as leader, and verify the result");
  auto& work = a.lead.work;
  auto& options = work.options;
  group
      .add_option("--members", &a.members,
                  "NAME=ADDRESS of each member, separated by commas, in order of rank")
      .separated_by(',')
      .required();
  group.add_option("--self", &a.lead.self, "name of this node; it need not be a member");
  group.add_option("--bind", &a.lead.bind, "this node's numeric address, if it is not a member");
  group.add_option("--port", &a.port, "TCP port of the members");
  group.add_option("--load", &work.load, "load to run: allreduce, training, nccl or gpu-training");
  group.add_option("--seconds", &options.seconds, "time budget of the load");
  group.add_option("--max-bytes", &options.max_bytes, "allreduce, nccl: largest message in bytes");
  group.add_option("--model", &options.shape.model, "training: width");
  group.add_option("--heads", &options.shape.heads, "training: attention heads");
  group.add_option("--sequence", &options.shape.sequence, "training: tokens per sequence");
  group.add_option("--layers", &options.shape.layers, "training: blocks");
  group.add_option("--threads", &options.threads, "training: threads per member; 0: one per processor");
  group.add_option("--root", &options.root, "training: folder to read instead of /sys");
  group.add_option("--gpus", &options.gpus, "GPU loads: number of GPUs per node");
  group.add_option("--algorithm", &options.algorithm,
                   "GPU loads: value of NCCL_ALGO; use Ring to measure a link");
  group.add_option("--nccl-port", &work.nccl_port,
                   "TCP port on the first member for the rendezvous of the GPU processes");
  group.add_option("--connect-seconds", &a.lead.connect_seconds, "seconds to wait for the members' servers");
  group.add_option("--deadline", &work.deadline_seconds, "end the load after this many seconds");
  group.add_option("--inject-flip", &options.flip_rank,
                   "flip one bit on this RANK, to show that this test detects it");
  group.add_flag("--bye", &a.bye, "stop the members' servers without running a load");
  add_here(group, a.lead.here);
}

void declare_server(Verb& app, GroupArguments& a) {
  auto& serve = app.add_verb("group-serve", "run ranks of a load for a `group` leader; exits by itself");
  serve.add_option("--bind", &a.serve.bind, "numeric address to listen on").required();
  serve.add_option("--port", &a.serve.port, "TCP port");
  serve
      .add_option("--peers", &a.serve.peers,
                  "numeric addresses to accept connections from, separated by commas")
      .separated_by(',')
      .required();
  serve.add_option("--seconds", &a.serve.seconds, "hard time limit in seconds");
  serve.add_option("--wait-seconds", &a.serve.wait_seconds,
                   "exit if no leader connects within this many seconds");
  serve.add_option("--linger-seconds", &a.serve.linger_seconds,
                   "exit this many seconds after a load unless a further load or `group --bye` follows");
  add_here(serve, a.serve.here);
}

kernels::Measurement bad(const std::string& why) {
  kernels::Measurement out;
  out.check = "group";
  out.outcome = kernels::Outcome::refused;
  out.error = why;
  return out;
}

}  // namespace

void declare_group(Verb& app, GroupArguments& arguments) {
  declare_leader(app, arguments);
  declare_server(app, arguments);
}

std::optional<kernels::Measurement> run_group(const std::string& verb, GroupArguments& a) {
  if (verb == "group-serve") return serve_group(a.serve);
  if (verb != "group") return std::nullopt;
  auto& work = a.lead.work;
  for (const auto& text : a.members) {
    const size_t at = text.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == text.size())
      return bad("--members: '" + text + "' is not NAME=ADDRESS");
    work.members.push_back({text.substr(0, at), text.substr(at + 1), a.port});
  }
  if (a.bye) return dismiss_group(a.lead);
  work.options.patience = std::min(kMostPatience, work.deadline_seconds / 2);
  work.meet_seconds = std::min(work.meet_seconds, work.deadline_seconds / 2);
  return lead_group(a.lead);
}

}  // namespace muster::together
