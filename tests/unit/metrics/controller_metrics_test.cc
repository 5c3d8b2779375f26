#include "controller/metrics/controller_metrics.h"

#include <fmt/format.h>

#include "tests/source_dir.h"
#include "tests/unit/metrics/series.h"

using namespace muster;
using testing::full_metrics;
using testing::Series;

namespace {

Series series_of(const ControllerMetrics& metrics) { return Series(exposition_of(metrics)); }

// Of the table of series in docs/metrics.md: name without labels -> type.
std::map<std::string, std::string> documented() {
  const std::string page = text_of(source_dir() + "/docs/metrics.md");
  static const std::regex row(R"(\n\| `([a-z_]+)[^`]*` \| (gauge|counter) \|)");
  std::map<std::string, std::string> out;
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it)
    out.emplace((*it)[1], (*it)[2]);
  return out;
}

}  // namespace

TEST_CASE("metrics: the page lists the series, and no other", "[metrics][docs]") {
  CHECK(series_of(full_metrics()).types == documented());
}

TEST_CASE("metrics: nodes are counted by state, and what is not known of one is left out", "[metrics]") {
  const Series all = series_of(full_metrics());
  CHECK(all.of("muster_nodes{state=\"accepted\"}") == "1");
  CHECK(all.of("muster_nodes{state=\"quarantined\"}") == "1");
  CHECK(all.of("muster_nodes{state=\"unknown\"}") == "1");
  CHECK(all.of("muster_nodes{state=\"unadmitted\"}") == "2");
  CHECK(all.of("muster_nodes{state=\"drained\"}") == "0");
  CHECK(all.count("muster_nodes") == node_states().size());
  CHECK(all.count("muster_node_state") == 3);
  CHECK(all.of("muster_node_state{node=\"n2\",state=\"quarantined\"}") == "1");
  CHECK(all.of("muster_node_silent_seconds{node=\"n1\"}") == "0");
  CHECK(all.of("muster_node_silent_seconds{node=\"n2\"}") == "90");
  CHECK(all.count("muster_node_silent_seconds") == 3);
  CHECK(all.of("muster_agent_certificate_expiration_timestamp_seconds{node=\"n1\"}") == "9");
  CHECK(all.count("muster_agent_certificate_expiration_timestamp_seconds") == 1);
}

TEST_CASE("metrics: of the newest run one state is 1, and its end is there when it has ended", "[metrics]") {
  ControllerMetrics metrics = full_metrics();
  Series all = series_of(metrics);
  CHECK(all.of("muster_run_active") == "0");
  CHECK(all.count("muster_last_run_state") == run_states().size());
  CHECK(all.of("muster_last_run_state{state=\"partial\"}") == "1");
  CHECK(all.of("muster_last_run_state{state=\"done\"}") == "0");
  CHECK(all.of("muster_last_run_end_timestamp_seconds") == "3");
  metrics.run_active = true;
  metrics.last_run->state = RunState::running;
  metrics.last_run->ended = 0;
  all = series_of(metrics);
  CHECK(all.of("muster_run_active") == "1");
  CHECK(all.of("muster_last_run_state{state=\"running\"}") == "1");
  CHECK(all.of("muster_last_run_start_timestamp_seconds") == "2");
  CHECK(all.of("muster_last_run_end_timestamp_seconds") == "absent");
}

TEST_CASE("metrics: an action has its age, the usual time where there is one, and the task of a person",
          "[metrics]") {
  const Series all = series_of(full_metrics());
  CHECK(all.of("muster_node_action_seconds{node=\"n1\",action=\"image\"}") == "60");
  CHECK(all.of("muster_node_action_usual_seconds{node=\"n1\",action=\"image\"}") == "30");
  CHECK(all.of("muster_node_action_seconds{node=\"n2\",action=\"netboot\"}") == "5");
  CHECK(all.count("muster_node_action_usual_seconds") == 1);
  CHECK(all.of("muster_node_manual_task{node=\"n2\"}") == "1");
  CHECK(all.count("muster_node_manual_task") == 1);
}

TEST_CASE("metrics: of the rollout one state is 1, also before there is one", "[metrics]") {
  ControllerMetrics metrics = full_metrics();
  Series all = series_of(metrics);
  CHECK(all.count("muster_rollout_state") == rollout::kRecordStates.size() + 1);
  CHECK(all.of("muster_rollout_state{state=\"batches\"}") == "1");
  CHECK(all.of("muster_rollout_state{state=\"none\"}") == "0");
  CHECK(all.of("muster_rollout_nodes{result=\"updated\"}") == "2");
  CHECK(all.of("muster_rollout_nodes{result=\"failed\"}") == "1");
  CHECK(all.of("muster_rollout_nodes{result=\"left\"}") == "3");
  CHECK(all.of("muster_rollout_held_images") == "1");
  CHECK(all.of("muster_rollout_window_end_timestamp_seconds") == "5");
  CHECK(all.count("muster_rollout_last_window_outcome") == rollout::kWindowOutcomes.size());
  CHECK(all.of("muster_rollout_last_window_outcome{outcome=\"nothing\"}") == "1");
  CHECK(all.of("muster_rollout_last_window_outcome{outcome=\"done\"}") == "0");
  CHECK(all.of("muster_rollout_last_window_end_timestamp_seconds") == "4");
  CHECK(all.of("muster_rollout_idle_windows") == "2");

  const rollout::Record approved;
  metrics.rollout = &approved;
  all = series_of(metrics);
  CHECK(all.of("muster_rollout_state{state=\"approved\"}") == "1");
  CHECK(all.count("muster_rollout_nodes") + all.count("muster_rollout_last_window_outcome") == 0);
  metrics.rollout = nullptr;
  CHECK(series_of(metrics).of("muster_rollout_state{state=\"none\"}") == "1");
}

TEST_CASE("metrics: every state that a rollout can be in is a series", "[metrics][rollout]") {
  const auto shown = [](const rollout::Record& record) {
    ControllerMetrics metrics;
    metrics.rollout = &record;
    return series_of(metrics).of("muster_rollout_state{state=\"" + rollout::state_of(record) + "\"}");
  };
  rollout::Record record;
  CHECK(shown(record) == "1");
  record.row = rollout::begun(1, "target");
  for (const auto& [stage, word] : rollout::kStages)
    for (const bool paused : {false, true}) {
      CAPTURE(word, paused);
      record.row->stage = stage;
      record.row->paused = paused;
      CHECK(shown(record) == "1");
    }
}

TEST_CASE("metrics: images, certificates, problems and notices", "[metrics]") {
  ControllerMetrics metrics = full_metrics();
  const Series all = series_of(metrics);
  CHECK(all.of("muster_image_build_timestamp_seconds{image=\"gpu\"}") == "6");
  CHECK(all.of("muster_image_build_timestamp_seconds{image=\"head\"}") == "absent");
  CHECK(all.of("muster_image_build_failed{image=\"gpu\"}") == "0");
  CHECK(all.of("muster_image_build_failed{image=\"head\"}") == "1");
  CHECK(all.of("muster_certificate_expiration_timestamp_seconds{certificate=\"server\"}") == "10");
  CHECK(all.of("muster_problem{topic=\"dhcp\"}") == "1");
  CHECK(all.of("muster_notices_undelivered") == "3");
  CHECK(all.of("muster_notices_lost") == "1");
  CHECK(all.of("muster_notice_receiver_failing{receiver=\"chat\"}") == "1");
  CHECK(all.of("muster_notice_receiver_failing{receiver=\"mail\"}") == "0");
  metrics.notices = {};
  CHECK(series_of(metrics).of("muster_notices_undelivered") == "0");
  CHECK(series_of(metrics).count("muster_notice_receiver_failing") == 0);
}

TEST_CASE("metrics: each kind of cause has its number, also 0", "[metrics]") {
  const ControllerMetrics metrics = full_metrics();
  const Series all = series_of(metrics);
  CHECK(all.count("muster_causes") == kCauseKinds.size());
  for (const auto& [kind, word] : kCauseKinds) {
    const auto found = metrics.causes.find(kind);
    CHECK(all.of(fmt::format("muster_causes{{kind=\"{}\"}}", word)) ==
          std::to_string(found == metrics.causes.end() ? 0 : found->second));
  }
}

TEST_CASE("metrics: a controller without a spec has its states, all 0, and nothing of nodes", "[metrics]") {
  const Series all = series_of({});
  CHECK(all.count("muster_nodes") == node_states().size());
  for (const NodeState state : node_states())
    CHECK(all.of(fmt::format("muster_nodes{{state=\"{}\"}}", to_string(state))) == "0");
  for (const RunState state : run_states())
    CHECK(all.of(fmt::format("muster_last_run_state{{state=\"{}\"}}", to_string(state))) == "0");
  CHECK(all.count("muster_node_state") + all.count("muster_last_run_start_timestamp_seconds") == 0);
  CHECK(all.count("muster_problem") + all.count("muster_image_build_failed") == 0);
}

TEST_CASE("metrics: names from outside cannot forge a series", "[metrics]") {
  ControllerMetrics metrics;
  const std::string hostile = "x\"} 0\nmuster_run_active 1\n# \xff\\";
  metrics.images = {{hostile, 1'000, true}};
  metrics.nodes = {{NodeName(hostile), NodeState::accepted, 0, 1'000}};
  metrics.problems = {{hostile, ""}};
  metrics.notices = NoticeMetrics{0, 0, {{hostile, true}}};
  const Series all = series_of(metrics);
  CHECK(all.of("muster_run_active") == "0");
  CHECK(all.count("muster_node_state") == 1);
  CHECK(all.count("muster_notice_receiver_failing") == 1);
}

TEST_CASE("metrics: 2,000 nodes, each once", "[metrics]") {
  ControllerMetrics metrics = full_metrics();
  metrics.nodes.clear();
  metrics.at_work.clear();
  for (int i = 0; i < 2000; ++i) {
    const NodeName name(fmt::format("node{:04}", i));
    metrics.nodes.push_back({name, NodeState::installing, i, 1'000});
    metrics.at_work.push_back({name, ActionKind::image, i, 1'000, true});
  }
  const std::string text = exposition_of(metrics);
  CHECK(text == exposition_of(metrics));
  CHECK(text.size() < (1 << 20));
  CHECK(text.find("\nmuster_nodes{state=\"installing\"} 2000\n") != std::string::npos);
  size_t lines = 0;
  for (size_t at = text.find("\nmuster_node_"); at != std::string::npos;
       at = text.find("\nmuster_node_", at + 1))
    ++lines;
  CHECK(lines == 2000 * 5);
}
