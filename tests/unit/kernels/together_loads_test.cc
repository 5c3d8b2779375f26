// The loads over a group: what is right is measured, one wrong bit is found and placed, a lost member ends
// the load on all others.
#include <algorithm>

#include "kernels/together/loads.h"
#include "kernels/together/training_load.h"
#include "tests/unit/kernels/together_fleet.h"

using namespace muster;
using namespace muster::together;
using kernels::Measurement;
using kernels::Outcome;

namespace {

using Load = Measurement (*)(Group&, const LoadOptions&);

LoadOptions small() {
  LoadOptions out;
  out.seconds = 0.01;  // the least of everything
  out.max_bytes = 300'000;
  out.shape = {24, 4, 7, 2};
  out.threads = 1;
  out.patience = 120;
  return out;
}

std::vector<Measurement> measure(size_t members, Load load, const LoadOptions& options) {
  Fleet fleet(members);
  std::vector<Measurement> out(members);
  run(fleet, first(members), [&](Met& met, size_t rank) {
    out[rank] = met.group ? load(*met.group, options) : lost_measurement("none", met.lost, met.error);
  });
  return out;
}

}  // namespace

TEST_CASE("loads: an all-reduce verifies every element, for pairs and for odd numbers of members") {
  for (const size_t members : {1U, 2U, 5U}) {
    const auto all = measure(members, run_allreduce, small());
    for (const auto& one : all) {
      CHECK(one.outcome == Outcome::measured);
      CHECK(one.check == "allreduce");
      CHECK(one.error == "");
    }
    CHECK(all[0].metrics.at("ranks").value == static_cast<double>(members));
    CHECK(all[0].metrics.at("latency_ms").value >= 0);
    CHECK((members == 1 || all[0].metrics.at("busbw_mbps").value > 0));
    CHECK(all[0].detail["hosts"].size() == members);
    CHECK(all[0].detail["sizes"].front()["bytes"] == 8);
    CHECK(all[0].detail["sizes"].back()["bytes"] == 300'000);
    for (size_t r = 1; r < members; ++r) {
      CHECK(all[r].metrics.empty());
      CHECK(all[r].detail["took_part"] == true);
      CHECK(all[r].detail["rank"] == r);
    }
  }
}

TEST_CASE("loads: one flipped bit of an all-reduce is found, and the member that has it is named") {
  LoadOptions options = small();
  options.flip_rank = 2;
  const auto all = measure(3, run_allreduce, options);
  CHECK(all[0].outcome == Outcome::corrupt);
  CHECK(all[0].faulty_parts == std::vector<std::string>{"rank 2 on node2"});
  CHECK(all[2].outcome == Outcome::measured);  // rank 0 speaks for all
}

TEST_CASE("loads: the training load gives the same gradients however it is partitioned") {
  for (const size_t members : {1U, 2U, 3U, 4U}) {
    const auto all = measure(members, run_training, small());
    for (const auto& one : all) {
      CHECK(one.outcome == Outcome::measured);
      CHECK(one.error == "");
    }
    const Measurement& first_one = all[0];
    CHECK(first_one.metrics.at("gflops_per_node").value > 0);
    for (const char* kind : {"weak", "tensor", "pipeline"})
      CHECK(first_one.metrics.count(std::string(kind) + "_efficiency") == (members > 1 ? 1 : 0));
    std::vector<std::string> points;
    for (const auto& point : first_one.detail["scaling"])
      points.push_back(point["kind"].get<std::string>() + " " + point["nodes"].dump());
    const auto has = [&](const char* what) {
      return std::count(points.begin(), points.end(), std::string(what)) == 1;
    };
    CHECK(has("strong 1"));
    CHECK(has("weak 1"));
    CHECK(has("weak 2") == (members > 1));
    CHECK(has("weak 3") == (members == 3));
    CHECK(has("tensor 4") == (members == 4));   // four heads
    CHECK(has("pipeline 2") == (members > 1));  // two layers
  }
}

TEST_CASE("loads: one flipped bit of a gradient is found, and the member that has it is named") {
  LoadOptions options = small();
  options.flip_rank = 1;
  const auto all = measure(3, run_training, options);
  CHECK(all[0].outcome == Outcome::corrupt);
  CHECK(all[0].faulty_parts == std::vector<std::string>{"rank 1 on node1"});
}

TEST_CASE("loads: what makes no load is refused by each member alone") {
  LoadOptions options = small();
  options.max_bytes = 7;
  options.shape.heads = 5;
  for (const Load load : {Load(run_allreduce), Load(run_training)})
    for (const auto& one : measure(2, load, options)) CHECK(one.outcome == Outcome::refused);
}

TEST_CASE("loads: a member that is killed ends the load on all others, which name it") {
  for (const Load load : {Load(run_allreduce), Load(run_training)}) {
    Fleet fleet(4);
    std::vector<Measurement> all(3);
    {
      const Child child(fleet, 3);
      Gate met_all(3);
      std::thread killer([&] {
        met_all.wait();
        if (child.joined()) child.signal(SIGKILL);
      });
      run(fleet, first(3), [&](Met& met, size_t rank) {
        met_all.done();
        if (met.group) all[rank] = load(*met.group, small());
      });
      killer.join();
    }
    for (const auto& one : all) {
      CHECK(one.outcome == Outcome::failed);
      CHECK(one.faulty_parts == std::vector<std::string>{"rank 3 on node3"});
      CHECK(one.detail["lost"] == Json::array({{{"rank", 3}, {"name", "node3"}, {"how", "died"}}}));
    }
  }
}

TEST_CASE("loads: energy is reported where all of a group have a meter, and marked when it is made up") {
  TrainingStudy study;
  study.shape = {24, 4, 7, 2};
  study.work = {4, 2, 2};
  study.hosts = {"a", "b"};
  study.entries = {{"weak", 1, {1.0, 2.0}, kernels::GroupEnergy{50, "machine"}},
                   {"weak", 2, {4.0}, kernels::GroupEnergy{100, "machine"}}};
  Measurement out;
  report(out, study);
  const Json& points = out.detail["scaling"];
  CHECK(points[0]["slowest_from"] == "b");
  CHECK(points[1]["energy"] == "machine");
  const double operations = 4 * training::operations(study.shape);  // two nodes, two sequences each
  CHECK(points[1]["gflop_per_joule"].get<double>() == Approx(operations / 100 / 1e9));
  CHECK(out.metrics.at("weak_efficiency").value == Approx(1.5 / 4));
  CHECK(out.metrics.count("gflop_per_joule") == 1);

  study.simulated = true;
  report(out, study);
  CHECK(out.detail["scaling"][1]["energy"] == "SIMULATED: machine");

  study.simulated = false;
  study.hosts = {"a", "a"};  // one meter for both
  report(out, study);
  CHECK(out.metrics.count("gflop_per_joule") == 0);
  CHECK_FALSE(out.detail["scaling"][1].contains("joules"));
}
