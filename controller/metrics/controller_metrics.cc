#include "controller/metrics/controller_metrics.h"

#include "base/words.h"
#include "controller/metrics/exposition.h"

namespace muster {
namespace {

constexpr auto kGauge = Exposition::Type::gauge;
constexpr auto kCounter = Exposition::Type::counter;

void add_process(Exposition& out, const ControllerMetrics& metrics) {
  const ProcessMetrics& process = metrics.process;
  out.family("muster_build_info", kGauge, "The version of musterd; always 1.")
      .sample({{"version", metrics.version}}, 1);
  out.family("process_start_time_seconds", kGauge, "When musterd was started.").seconds({}, process.started);
  out.family("process_cpu_seconds_total", kCounter, "Processor time that musterd used.")
      .seconds({}, process.cpu);
  out.family("process_resident_memory_bytes", kGauge, "Memory of musterd.")
      .sample({}, process.resident_bytes);
  out.family("process_open_fds", kGauge, "Open files and connections of musterd.")
      .sample({}, process.open_files);
  out.family("process_max_fds", kGauge, "The limit of process_open_fds.").sample({}, process.most_open_files);
}

void add_nodes(Exposition& out, const ControllerMetrics& metrics) {
  std::map<NodeState, int64_t> counts;
  for (const NodeMetrics& node : metrics.nodes) ++counts[node.state];
  counts[NodeState::unadmitted] += metrics.undeclared;
  out.family("muster_nodes", kGauge, "Nodes by state; `unadmitted`: undeclared machines.");
  for (const NodeState state : node_states()) out.sample({{"state", to_string(state)}}, counts[state]);
  out.family("muster_node_state", kGauge, "The state that the node is in; always 1.");
  for (const NodeMetrics& node : metrics.nodes)
    out.sample({{"node", node.name.str()}, {"state", to_string(node.state)}}, 1);
  out.family("muster_node_silent_seconds", kGauge,
             "How long the node's agent has not reported; 0 while it does, or if there is none.");
  for (const NodeMetrics& node : metrics.nodes) out.seconds({{"node", node.name.str()}}, node.silent);
  out.family("muster_agent_certificate_expiration_timestamp_seconds", kGauge,
             "When the certificate ends that the node's agent uses.");
  for (const NodeMetrics& node : metrics.nodes)
    if (node.certificate_ends > 0) out.seconds({{"node", node.name.str()}}, node.certificate_ends);
}

void add_run(Exposition& out, const ControllerMetrics& metrics) {
  out.family("muster_run_active", kGauge, "1 while a run is active.").sample({}, metrics.run_active);
  out.family("muster_last_run_state", kGauge, "1 for the state of the newest run.");
  for (const RunState state : run_states())
    out.sample({{"state", to_string(state)}}, metrics.last_run && metrics.last_run->state == state);
  if (metrics.last_run) {
    out.family("muster_last_run_start_timestamp_seconds", kGauge, "When the newest run began.")
        .seconds({}, metrics.last_run->started);
    out.family("muster_last_run_end_timestamp_seconds", kGauge, "When the newest run ended.");
    if (metrics.last_run->ended > 0) out.seconds({}, metrics.last_run->ended);
  }
  out.family("muster_node_action_seconds", kGauge, "How long the node has been at its action of the run.");
  for (const AtWork& work : metrics.at_work)
    out.seconds({{"node", work.node.str()}, {"action", to_string(work.kind)}}, work.age);
  out.family("muster_node_action_usual_seconds", kGauge,
             "How long that action took at the other nodes of the run: the median.");
  for (const AtWork& work : metrics.at_work)
    if (work.usual) out.seconds({{"node", work.node.str()}, {"action", to_string(work.kind)}}, *work.usual);
  out.family("muster_node_manual_task", kGauge, "The run waits for a person at this node; always 1.");
  for (const AtWork& work : metrics.at_work)
    if (work.by_hand) out.sample({{"node", work.node.str()}}, 1);
}

void add_last_window(Exposition& out, const rollout::WindowResult& last) {
  out.family("muster_rollout_last_window_outcome", kGauge, "1 for what came of the last window.");
  for (const auto& [outcome, word] : rollout::kWindowOutcomes)
    out.sample({{"outcome", word}}, last.outcome == outcome);
  out.family("muster_rollout_last_window_end_timestamp_seconds", kGauge,
             "When nothing more began in the last window.")
      .seconds({}, last.ended);
  out.family("muster_rollout_idle_windows", kGauge,
             "Windows in a row in which no node was updated although one needed it.")
      .sample({}, rollout::idle_windows(last));
}

void add_rollout(Exposition& out, const rollout::Record* record) {
  const std::string now = record ? rollout::state_of(*record) : "none";
  out.family("muster_rollout_state", kGauge, "1 for the state of the rollout.");
  out.sample({{"state", "none"}}, !record);
  for (const std::string_view state : rollout::kRecordStates) out.sample({{"state", state}}, now == state);
  if (!record) return;
  if (record->row) {
    out.family("muster_rollout_nodes", kGauge, "Nodes of the rollout: updated, failed, or left so far.");
    out.sample({{"result", "updated"}}, static_cast<int64_t>(record->row->done.size()));
    out.sample({{"result", "failed"}}, static_cast<int64_t>(record->row->failed.size()));
    out.sample({{"result", "left"}}, static_cast<int64_t>(record->left.size()));
    out.family("muster_rollout_held_images", kGauge, "Images that no node gets because their canary failed.")
        .sample({}, static_cast<int64_t>(record->row->held.size()));
  }
  if (record->window_until > 0)
    out.family("muster_rollout_window_end_timestamp_seconds", kGauge,
               "When the window ends that was opened last.")
        .seconds({}, record->window_until);
  if (record->last_window) add_last_window(out, *record->last_window);
}

void add_images(Exposition& out, const std::vector<ImageMetrics>& images) {
  out.family("muster_image_build_timestamp_seconds", kGauge, "When the current image was built.");
  for (const ImageMetrics& image : images)
    if (image.built > 0) out.seconds({{"image", image.name}}, image.built);
  out.family("muster_image_build_failed", kGauge,
             "1 if the image's last build failed since musterd was started.");
  for (const ImageMetrics& image : images) out.sample({{"image", image.name}}, image.failed);
}

void add_controller(Exposition& out, const ControllerMetrics& metrics) {
  out.family("muster_certificate_expiration_timestamp_seconds", kGauge,
             "When the controller's certificate ends.");
  for (const auto& [name, end] : metrics.certificates) out.seconds({{"certificate", name}}, end);
  out.family("muster_problem", kGauge,
             "A problem of the controller, as in `muster status`, but not the rollout's; always 1.");
  for (const auto& [topic, text] : metrics.problems) out.sample({{"topic", topic}}, 1);
}

void add_causes(Exposition& out, const std::map<CauseKind, int64_t>& causes) {
  out.family("muster_causes", kGauge, "Causes of what is wrong, by kind, as in `muster status`.");
  for (const auto& [kind, word] : kCauseKinds) {
    const auto found = causes.find(kind);
    out.sample({{"kind", word}}, found == causes.end() ? 0 : found->second);
  }
}

void add_notices(Exposition& out, const NoticeMetrics& notices) {
  out.family("muster_notices_undelivered", kGauge, "Notices that their receivers have not taken yet.")
      .sample({}, notices.undelivered);
  out.family("muster_notices_lost", kGauge, "Notices that were given up.").sample({}, notices.lost);
  out.family("muster_notice_receiver_failing", kGauge,
             "1 if the last three attempts to deliver to the receiver failed.");
  for (const auto& [receiver, failing] : notices.failing) out.sample({{"receiver", receiver}}, failing);
}

}  // namespace

std::string exposition_of(const ControllerMetrics& metrics) {
  Exposition out;
  add_process(out, metrics);
  add_nodes(out, metrics);
  add_run(out, metrics);
  add_rollout(out, metrics.rollout);
  add_images(out, metrics.images);
  add_controller(out, metrics);
  add_causes(out, metrics.causes);
  add_notices(out, metrics.notices);
  return out.take();
}

}  // namespace muster
