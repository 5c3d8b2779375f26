// `muster accept --hosts` as a session over hosts that are in this process (tests/fakes/fake_hosts.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/hosts/session.h"
#include "controller/report/signature.h"
#include "tests/catch.h"
#include "tests/fakes/fake_hosts.h"
#include "tests/fakes/temp_dir.h"

namespace muster {

inline constexpr const char* kTinyProfile = R"(playbook: tiny
help: one measurement
steps:
  - name: pcie
    phase: node
    module: accept
    params: { kernel: pcie }
    expect: { lanes_lost: { max: 0, unit: lanes } }
)";
// Uses the hosts' addresses.
inline constexpr const char* kTinyLinks = R"(playbook: tiny-links
help: one measurement between hosts
steps:
  - name: pcie
    phase: node
    module: accept
    params: { kernel: pcie, options: { address: "{{node.address}}" } }
    expect: { lanes_lost: { max: 0, unit: lanes } }
)";

class SessionBench {
 public:
  SessionBench() {
    std::filesystem::create_directories(dir_.path("playbooks/acceptance"));
    dir_.write("playbooks/acceptance/tiny.yaml", kTinyProfile);
    dir_.write("playbooks/acceptance/tiny-links.yaml", kTinyLinks);
    dir_.write("muster-agent", "agent");
    dir_.write("muster-accept", "accept");
    options.core.state = dir_.path("accept/hosts");
    options.core.playbooks = dir_.path("playbooks");
    options.core.agent_binary = dir_.path("muster-agent");
    options.core.accept_binary = dir_.path("muster-accept");
    options.keys = dir_.path("accept");
    options.cluster = "hosts";
    options.profile = "tiny";
    options.timing.again_first = options.timing.again_last = 1;
    options.timing.give_up = 20;
    options.first_words = 20 * kSecond;
  }
  FakeHost& add(const std::string& name) {
    return add(name, "10.0.3." + std::to_string(options.hosts.size() + 1));
  }
  // "" for an address: the list has none.
  FakeHost& add(const std::string& name, const std::string& address, const std::string& looked_up = "") {
    options.hosts.push_back({name, address, "", {"sh"}, looked_up});
    return hosts.add(name);
  }
  Result<std::unique_ptr<AcceptSession>> open() {
    options.open = hosts.opener();
    return AcceptSession::open(*reactor, options,
                               {[this](const HostOutcome& host) { out.push_back(host.name); },
                                [this](SessionOutcome outcome) {
                                  ended = std::move(outcome);
                                  reactor->stop();
                                },
                                [this](const std::vector<NotMeasured>&) { foreseen = true; }});
  }
  const SessionOutcome& run() {
    auto opened = open();
    REQUIRE(opened.ok());
    session = std::move(opened).value();
    reactor->post([this] { session->start(); });
    reactor->after(60 * kSecond, [this] { reactor->stop(); });
    reactor->run();
    REQUIRE(ended);
    session.reset();
    return *ended;
  }
  // Another command later.
  void again() {
    ended.reset();
    session.reset();
    reactor = make_reactor(4);
  }
  HostVerdict verdict(const std::string& name) const {
    for (const auto& host : ended->hosts) {
      if (host.name != name) continue;
      UNSCOPED_INFO(name << ": " << host.reason);  // shown where a check fails
      return host.verdict;
    }
    return HostVerdict::cancelled;
  }
  std::string reason(const std::string& name) const {
    for (const auto& host : ended->hosts)
      if (host.name == name) return host.reason;
    return "";
  }
  Json report() const { return parse_json(split_signature(ended->report.at("report.json"))->body).value(); }
  std::string path(const std::string& name) const { return dir_.path(name); }
  void write(const std::string& name, const std::string& text) const { dir_.write(name, text); }
  std::string read(const std::string& name) const { return dir_.read(name); }

 private:
  TempDir dir_;

 public:
  std::unique_ptr<RealReactor> reactor = make_reactor(4);
  FakeHosts hosts{*reactor};
  SessionOptions options;
  std::unique_ptr<AcceptSession> session;
  std::optional<SessionOutcome> ended;
  std::vector<std::string> out;
  bool foreseen = false;  // what will not be measured
};

}  // namespace muster
