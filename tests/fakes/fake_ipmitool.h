// A stand-in for the program ipmitool and the BMC behind it: a Process that takes the driver's calls and
// remembers. It misbehaves as docs and recordings say BMCs and ipmitool 1.8.19 do: a wrong password, a wrong
// cipher suite and no BMC end alike, but for what -v adds; boot flags go after 60 s unless they are to
// be kept, which some refuse; the bits for valid and UEFI are dropped on reading; power lags; accounts lock.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "controller/power/waiter.h"
#include "lab/fake_machine.h"
#include "sys/os.h"

namespace muster::testing {

class FakeIpmitool : public Process {
 public:
  using Bytes = std::vector<int>;

  FakeIpmitool() {
    machine.on_boot([this] {
      device_ = flags_ = 0;
      machine.set_boot_first(lab::BootFirst::disk);
    });
  }

  // As the BMC has it.
  std::string user = "admin", password = "pw:with:colons";
  std::set<int> suites = {3, 17};
  Bytes guid = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
                0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0};
  bool knows_guid = true, keeps_flags = true, shows_valid = true, shows_uefi = true;
  bool refuses_boot = false, forgets_boot = false;  // 0xcc; or takes it and does not
  bool knows_soft_off = true;
  int lost_sessions = 0;        // the next so many find no BMC
  int lost_answers = 0;         // the next so many power orders are carried out, and their answers lost
  int lost_orders = 0;          // are not carried out, and no answer arrives
  int refused_orders = 0;       // are refused: not in the present state
  bool ignores_orders = false;  // takes power orders, and nothing happens
  int refuses_level = 0;        // the next so many scripts are answered "insufficient privilege"
  int busy = 0;                 // the next so many commands are answered "node busy"
  DurationMs lag = 0;           // for which the old power state is shown
  std::string babble;           // printed instead of answers
  // A call, and what is said to it instead of opening a session; "" where one comes about.
  struct Call {
    size_t number = 0;  // from 1
    int suite = 0, seconds = 0;
    std::string level;
  };
  std::function<std::string(const Call&)> complains;
  lab::FakeMachine machine;
  std::atomic<TimeMs> clock{1'000'000};

  // What was seen.
  std::vector<std::string> arguments;  // of each call
  std::vector<TimeMs> times;
  std::vector<std::string> orders;  // raw commands that change something
  int failed_logins = 0;

  Waiter waiter() {
    return {[this] { return clock.load(); },
            [this](DurationMs span) {
              clock += span;
              machine.boot();
            }};
  }
  std::string boots() {
    machine.boot();
    std::string out;
    for (const lab::BootFirst one : machine.boots()) out += one == lab::BootFirst::network ? 'n' : 'd';
    return out;
  }

  Result<Output> run(const Command& command) override {
    std::string line;
    for (const auto& word : command.argv) line += word + " ";
    arguments.push_back(line);
    times.push_back(clock);
    const auto after = [&](const std::string& flag) {
      for (size_t i = 0; i + 1 < command.argv.size(); ++i)
        if (command.argv[i] == flag) return command.argv[i + 1];
      return std::string();
    };
    const auto given = command.env.find("IPMITOOL_PASSWORD");
    const std::string end = "Error: Unable to establish IPMI v2 / RMCP+ session\n";
    if (lost_sessions > 0) {
      --lost_sessions;
      clock += 6 * kSecond;
      return Output{1, "",
                    "Get Auth Capabilities error\nError issuing Get Channel Authentication "
                    "Capabilities request\n" +
                        end};
    }
    const Call call{arguments.size(), std::atoi(after("-C").c_str()), std::atoi(after("-N").c_str()),
                    after("-L")};
    if (const std::string said = complains ? complains(call) : ""; !said.empty())
      return Output{1, "", "Loading IANA PEN Registry...\n" + said};
    if (!suites.count(std::atoi(after("-C").c_str())))
      return Output{1, "",
                    "Error in open session response message : invalid authentication algorithm\n\n" + end};
    if (after("-U") != user || failed_logins >= 3) {
      ++failed_logins;
      return Output{1, "", "RAKP 2 message indicates an error : unauthorized name\n" + end};
    }
    if (given == command.env.end() || given->second != password) {
      ++failed_logins;
      return Output{1, "", "> RAKP 2 HMAC is invalid\n" + end};
    }
    return session(command.input);
  }

 private:
  Output session(const std::string& script) {
    Output output{0, "", "Loading IANA PEN Registry...\n"};
    std::istringstream lines(script);
    const bool denies = refuses_level > 0;
    refuses_level -= denies ? 1 : 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("raw ")) {
        output.err += "Invalid command: " + line + "\n";
        output.exit_code = 1;
        continue;
      }
      Bytes bytes;
      std::istringstream words(line.substr(4));
      for (std::string word; words >> word;) bytes.push_back(static_cast<int>(std::stoul(word, nullptr, 16)));
      Bytes data;
      const int code = denies ? 0xd4 : busy > 0 ? (--busy, 0xc0) : carry_out(bytes, data);
      if (code != 0) {
        output.exit_code = 1;
        output.err +=
            fmt::format("Unable to send RAW command (channel=0x0 netfn=0x{:x} lun=0x0 cmd=0x{:x}{}", bytes[0],
                        bytes[1], code < 0 ? ")\n" : fmt::format(" rsp=0x{:x}): {}\n", code, "refused"));
        continue;
      }
      for (const int byte : data) output.out += fmt::format(" {:02x}", byte);
      output.out += "\n";
    }
    if (!babble.empty()) output.out = babble;
    return output;
  }

  // The completion code; -1: no answer came.
  int carry_out(const Bytes& in, Bytes& data) {
    if (set_at_ && !kept_ && clock - set_at_ > 60 * kSecond) flags_ &= ~0x80;
    if (in == Bytes{6, 0x37}) {
      data = guid;
      return knows_guid ? 0 : 0xc1;
    }
    if (in == Bytes{6, 1}) {
      data = {0x20, 0x81, 0x02, 0x45, 0x02, 0xdf, 0x7c, 0x2a, 0x00, 0x34, 0x12};
      return 0;
    }
    if (in == Bytes{0, 1}) {
      const bool on = clock < changed_ + lag ? !machine.running() : machine.running();
      data = {on ? 1 : 0, 0, 0};
      return 0;
    }
    if (in == Bytes{0, 9, 5, 0, 0}) {
      const int hidden = (shows_valid ? 0 : 0x80) | (shows_uefi ? 0 : 0x20);
      data = {1, 5, flags_ & ~hidden, device_, 0, 0, 0};
      return 0;
    }
    return change(in);
  }

  int change(const Bytes& in) {
    std::string text;
    for (const int byte : in) text += fmt::format("{:02x}", byte);
    orders.push_back(text);
    if (in == Bytes{0, 8, 3, 8}) {
      kept_ = keeps_flags;
      return keeps_flags ? 0 : 0xcc;
    }
    if (in.size() == 8 && in[0] == 0 && in[1] == 8 && in[2] == 5) {
      if (refuses_boot) return 0xcc;
      if (forgets_boot) return 0;
      flags_ = in[3];
      device_ = in[4];
      set_at_ = clock;
      machine.set_boot_first(device_ == 4 ? lab::BootFirst::network : lab::BootFirst::disk);
      return 0;
    }
    if (in.size() != 3 || in[0] != 0 || in[1] != 2) return 0xc1;
    if (refused_orders > 0) return --refused_orders, 0xd5;
    if (lost_orders > 0) return --lost_orders, -1;
    if (ignores_orders) return 0;
    const bool was = machine.running();
    if (in[2] == 1 && set_at_ && !(flags_ & 0x80)) machine.set_boot_first(lab::BootFirst::disk);
    if (in[2] == 0) machine.cut_power();
    if (in[2] == 1) machine.start();
    if (in[2] == 5 && !knows_soft_off) return 0xcc;
    if (in[2] == 5) machine.press_power();
    if (was != machine.running()) changed_ = clock;
    if (lost_answers > 0) return --lost_answers, -1;
    return 0;
  }

  int flags_ = 0, device_ = 0;
  TimeMs set_at_ = 0, changed_ = -3'600'000;
  bool kept_ = false;
};

}  // namespace muster::testing
