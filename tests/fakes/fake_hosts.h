// Hosts at the end of wires that never leave this process: each runs the real agent over a link in memory,
// and answers as the test sets. A wire is lost, and comes back as another boot or another machine, when the
// test says so. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/hosts/host_links.h"

namespace muster {

struct FakeHost {
  HardwareFacts facts = {};
  std::string busy = {};              // what is at work on it
  std::optional<Error> refuses = {};  // instead of an answer
  int refuses_times = 1'000'000;      // so often
  std::string boot = {}, hostname = {}, how = "root", why_user = {};
  std::string ssh_server = {};              // HostHello
  std::vector<std::string> addresses = {};  // HostHello
  double lanes_lost = 0;                    // what it measures
  std::string check = {};                   // with this kernel; "": one that is not named
  bool holds = false;                       // an order never ends by itself
};

class FakeHosts {
 public:
  explicit FakeHosts(RealReactor& reactor) : reactor_(reactor) {}
  // A server of its own: UUID and boot id are made from its name.
  FakeHost& add(const std::string& name);
  FakeHost& at(const std::string& name) { return hosts_.at(name); }
  HostLinks::Open opener();

  // The connection breaks off, if there is one.
  void cut(const std::string& name, Error error = fail(Code::unavailable, "connection reset"));
  int opened(const std::string& name) const;
  size_t open_now() const;
  int left() const { return left_; }  // wires that were left in order
  // The steps of all orders of a host, as JSON text.
  const std::string& steps(const std::string& name) { return steps_[name]; }
  // The programs that they name, likewise.
  const std::string& programs(const std::string& name) { return programs_[name]; }
  // An order begins on a host: the n-th of that host.
  std::function<void(const std::string& host, int n)> on_order = {};

 private:
  class Wire;
  RealReactor& reactor_;
  std::map<std::string, FakeHost> hosts_;
  std::map<std::string, int> opened_, orders_;
  std::map<std::string, std::string> steps_, programs_;
  std::map<std::string, Wire*> open_;
  int left_ = 0;
};

}  // namespace muster
