// Reports for the tests of controller/report: one with everything in it, made by the real rules.
#pragma once

#include "controller/report/report.h"
#include "controller/report/verdict.h"

namespace muster::report_sample {

inline Json measured(const std::string& check, std::map<std::string, std::pair<double, std::string>> metrics,
                     Json detail = Json::object()) {
  Json values = Json::object();
  for (const auto& [name, value] : metrics) values[name] = {{"value", value.first}, {"unit", value.second}};
  return {{"check", check},         {"version", 1},      {"outcome", "measured"},      {"error", ""},
          {"blame", Json::array()}, {"metrics", values}, {"detail", std::move(detail)}};
}

inline NodeSpec node_spec(const std::string& name) {
  NodeSpec out;
  out.name = NodeName(name);
  out.role = "cpu";
  out.hardware.cpus = 1;
  out.hardware.memory_bytes_min = int64_t{1} << 30;
  out.hardware.nics = {{"any", 1}};
  const auto add_group = [&](const char* group, const char* model, int count) {
    DiskGroup& g = out.disks[group];
    g.name = group;
    g.match.model = model;
    g.match.count = count;
  };
  add_group("os", "MUSTER LAB OS", 1);
  add_group("fast", "MUSTER LAB FAST", 2);
  add_group("bulk", "MUSTER LAB BULK", 1);
  return out;
}

inline HardwareFacts facts(const std::string& name) {
  HardwareFacts out;
  out.system = {"QEMU", "Standard PC (Q35 + ICH9, 2009)", "LAB-" + name,
                "6b1c0000-0000-4000-8000-0000000000" + name.substr(name.size() - 2)};
  out.cpus = {1, 1, "QEMU Virtual CPU version 2.5+"};
  out.memory_bytes = 1013903360;
  out.nics = {
      {"eth0", "52:54:00:20:00:" + name.substr(name.size() - 2), 0, "virtio_net", "0000:00:02.0", true}};
  const auto add_disk = [&](const std::string& serial, const char* model, uint64_t size) {
    DiskFacts d;
    d.serial = name + "-" + serial;
    d.wwid = "nvme.1b36-" + serial;
    d.model = model;
    d.size_bytes = size;
    d.transport = "nvme";
    out.disks.push_back(d);
  };
  add_disk("bulk0", "MUSTER LAB BULK", 2147483648);
  add_disk("fast0", "MUSTER LAB FAST", 2147483648);
  add_disk("fast1", "MUSTER LAB FAST", 2147483648);
  add_disk("os", "MUSTER LAB OS", 8589934592);
  out.firmware = "EDK II 2022.11-6";
  out.uefi = true;
  out.kernel = "6.1.0-37-cloud-amd64";
  return out;
}

inline MeasuredStep step(const std::string& node, const std::string& group, const std::string& title,
                         const std::string& subject, Json expect, Json result) {
  MeasuredStep out;
  out.node = node;
  out.group = group;
  out.title = title;
  out.subject = subject;
  out.status = "applied";
  out.expect = std::move(expect);
  out.result = std::move(result);
  return out;
}

inline std::vector<MeasuredStep> measurements() {
  std::vector<MeasuredStep> out;
  const std::vector<std::string> nodes = {"node01", "node02", "node03"};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double f = 1 + 0.05 * static_cast<double>(i);
    const std::string& peer = nodes[(i + 1) % nodes.size()];
    out.push_back(step(
        nodes[i], "dgemm", "Matrix products", "",
        Json::parse(R"({"gflops":{"min":0.005,"fleet_min_ratio":0.5,"unit":"GFLOP/s"}})"),
        measured(
            "dgemm", {{"gflops", {0.2811 * f, "GFLOP/s"}}},
            {{"n", 192},
             {"verified", "every element of every product, bit by bit, against an integer reference"}})));
    out.push_back(
        step(nodes[i], "stream", "Memory bandwidth", "",
             Json::parse(R"({"triad_mbps":{"min":100,"fleet_min_ratio":0.5,"unit":"MB/s"}})"),
             measured("stream", {{"triad_mbps", {2741 * f, "MB/s"}}, {"copy_mbps", {7096 * f, "MB/s"}}},
                      {{"cache_resident", false}})));
    out.push_back(
        step(nodes[i], "storage-local", "Local storage", "/scratch",
             Json::parse(R"({"write_mbps":{"min":5,"unit":"MB/s"},"read_mbps":{"min":5,"unit":"MB/s"}})"),
             measured("fio", {{"write_mbps", {61 * f, "MB/s"}}, {"read_mbps", {88 * f, "MB/s"}}})));
    out.push_back(
        step(nodes[i], "storage-shared", "Shared storage", "/shared",
             Json::parse(R"({"write_mbps":{"min":1,"unit":"MB/s"},"read_mbps":{"min":1,"unit":"MB/s"}})"),
             measured("fio", {{"write_mbps", {4.2 * f, "MB/s"}}, {"read_mbps", {9.1 * f, "MB/s"}}})));
    out.push_back(step(
        nodes[i], "link", "Link", peer,
        Json::parse(
            R"({"send_mbps":{"min":1,"fleet_min_ratio":0.3,"unit":"MB/s"},"rtt_ms":{"max":50,"unit":"ms"}})"),
        measured(
            "link",
            {{"send_mbps", {8.9 * f, "MB/s"}}, {"receive_mbps", {8.4 * f, "MB/s"}}, {"rtt_ms", {1.31, "ms"}}},
            {{"to", "10.20.0.1" + peer.substr(5)}, {"verified", "every byte at its receiver"}})));
  }
  Json scaling = Json::array();
  const auto point = [&](const char* kind, int n, double seconds, double efficiency) {
    scaling.push_back({{"kind", kind}, {"nodes", n}, {"seconds", seconds}, {"efficiency", efficiency}});
  };
  // One node has no meter: what all three did has no energy.
  const auto energy = [&](double joules, double gflop_per_joule) {
    scaling.back().update({{"joules", joules},
                           {"gflop_per_joule", gflop_per_joule},
                           {"energy", "SIMULATED: processor packages"}});
  };
  point("strong", 1, 0.8, 1);
  energy(96, 1.25);
  point("strong", 2, 0.46, 0.87);
  energy(110.5, 1.086);
  point("strong", 3, 0.33, 0.81);
  point("weak", 1, 0.4, 1);
  point("weak", 2, 0.45, 0.89);
  point("weak", 3, 0.47, 0.85);
  point("tensor", 2, 0.4, 0.5);
  point("pipeline", 2, 0.31, 0.65);
  out.push_back(step("node01", "training", "Training load", "",
                     Json::parse(R"({"ranks":{"min":2,"unit":"ranks"}})"),
                     measured("training", {{"ranks", {3, "ranks"}}}, {{"scaling", scaling}})));
  return out;
}

// Three lab nodes: accepted, accepted with an optional check degraded, quarantined before acceptance.
inline Report full() {
  Report r;
  r.cluster = "quickstart";
  r.simulated = true;
  r.kind = "install";
  r.run = 7;
  r.spec_revision = 3;
  r.spec_digest = "sha256:" + std::string(64, 'a');
  r.plan_digests = {"sha256:" + std::string(64, 'b'), "sha256:" + std::string(64, 'c')};
  r.images = {{"debian-12", "sha256:" + std::string(64, 'd')}};
  r.approved_by = "ops";
  r.profile = "cpu-quick";
  r.version = "0.1.0";
  r.started = 1795204800000;
  r.ended = r.started + 312400;
  const auto steps = measurements();
  const auto judged = judge_measurements(steps);
  for (int i = 1; i <= 3; ++i) {
    NodeReport n;
    n.name = "node0" + std::to_string(i);
    n.role = "cpu";
    n.address = "10.20.0.1" + std::to_string(i);
    n.verdict = NodeVerdict::accepted;
    const HardwareFacts f = facts(n.name);
    n.vendor = f.system.vendor;
    n.product = f.system.product;
    n.serial = f.system.serial;
    n.uuid = f.system.uuid;
    n.image = "debian-12";
    n.image_digest = r.images["debian-12"];
    n.config_digest = "sha256:" + std::string(64, 'e');
    n.kernel = f.kernel;
    n.firmware = f.firmware;
    n.facts = to_json(f);
    n.checks = judge_hardware(node_spec(n.name), &f);
    for (const auto& check : judged.at(n.name)) n.checks.push_back(check);
    const char* const groups[] = {"bulk", "fast", "fast", "os"};
    for (size_t d = 0; d < f.disks.size(); ++d) n.disks.push_back({f.disks[d], groups[d]});
    TimeMs at = r.started + 4000 * i;
    const std::vector<std::pair<const char*, DurationMs>> phases = {
        {"power", 2100},      {"discover", 38400}, {"image", 61300},   {"boot", 44800},
        {"configure", 52600}, {"storage", 21900},  {"cluster", 40100}, {"accept", 31700}};
    for (const auto& [name, duration] : phases) {
      n.phases.push_back({name, at, duration, "done"});
      at += duration;
    }
    n.steps = {{"base/packages", "image", "baked", "", 12},
               {"base/hostname", "node", "already", "", 3},
               {"ssh/harden", "node", "applied", "PasswordAuthentication no", 840},
               {"gpu/driver", "node", "not_applicable", "no GPU declared", 0},
               {"storage/raid", "node", "applied", "/dev/md/scratch, 2 disks", 5210}};
    r.nodes.push_back(n);
    r.destroyed.push_back({{n.name + "-os", "nvme.1b36-os", "MUSTER LAB OS", 8589934592},
                           n.name,
                           "os",
                           "blank",
                           "operating system image debian-12"});
    r.destroyed.push_back({{n.name + "-fast0", "nvme.1b36-fast0", "MUSTER LAB FAST", 2147483648},
                           n.name,
                           "fast",
                           "GPT, 1 partition: ext4 \"old-data\"",
                           "RAID0 for /scratch"});
  }
  r.nodes[1].checks.push_back([] {
    Check c;
    c.name = "storage-local/random_read_iops";
    c.title = "Local storage";
    c.subject = "/scratch";
    c.mandatory = false;
    c.verdict = Verdict::degraded;
    c.measured = 812;
    c.expected = 1000;
    c.unit = "1/s";
    c.measured_text = "812 1/s";
    c.expected_text = "at least 1000 1/s";
    c.because = c.derivation = "the profile's `min`, 1000 1/s";
    c.source = "the acceptance profile";
    c.reason = "812 1/s is below 1000 1/s";
    return c;
  }());
  NodeReport& bad = r.nodes[2];
  bad.verdict = NodeVerdict::quarantined;
  bad.reason = "storage/raid: a disk of group fast no longer has the content the plan was approved for";
  bad.checks = judge_hardware(node_spec(bad.name), nullptr);
  bad.phases.resize(6);
  bad.phases.back().outcome = "failed";
  bad.steps.back().status = "failed";
  bad.steps.back().message = bad.reason;
  r.links = link_matrix(steps, {"node01", "node02", "node03"},
                        {{"10.20.0.11", "node01"}, {"10.20.0.12", "node02"}, {"10.20.0.13", "node03"}});
  r.notes = {"plain HTTP and TFTP of the first boot stage are not authenticated"};
  return r;
}

}  // namespace muster::report_sample
