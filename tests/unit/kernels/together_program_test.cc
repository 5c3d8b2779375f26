// The verbs `group` and `group-serve` of muster-accept, as programs over loopback: a right result, wrong
// data, members that are not there, refuse, die or answer nonsense, a leader that is lost.
#include <poll.h>

#include <list>
#include <memory>
#include <thread>

#include "base/json_dump.h"
#include "kernels/common/library.h"
#include "kernels/together/socket.h"
#include "kernels/together/message.h"
#include "kernels/together/tcp_group.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::together;

namespace {

using StringList = std::vector<std::string>;

// The port is this node's for as long as it takes to choose it; other addresses have it free as well.
uint16_t free_port() { return listen_at("127.0.0.1", 0)->port; }

Json run_program(StringList words) {
  words.insert(words.begin(), build_dir() + "/muster-accept");
  const auto output = make_process()->run({.argv = words, .deadline = 5 * kMinute});
  if (!output.ok()) return {{"error", output.error().message}};
  return parse_json(output->out).value_or(Json{{"error", output->err}});
}

// Servers on loopback addresses, each a process. They end when the test does.
class Servers {
 public:
  explicit Servers(uint16_t port, const std::string& leader = "127.0.0.1")
      : port_(std::to_string(port)), leader_(leader) {}
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;
  ~Servers() { end(); }

  void serve(const std::string& name, const std::string& address, const StringList& more = {}) {
    StringList words = {"group-serve", "--bind", address, "--port", port_, "--peers", leader_};
    words.insert(words.end(), more.begin(), more.end());
    members_ += (members_.empty() ? "" : ",") + name + "=" + address;
    ended_.emplace_back();
    threads_.emplace_back([words, &out = ended_.back()] { out = run_program(words); });
  }
  // As node1 of this address.
  Json lead(const std::string& members, const StringList& more) const {
    StringList words = {"group", "--members", members, "--self", "node1", "--bind", leader_, "--port", port_};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  // What the servers printed.
  std::vector<Json> end() {
    if (!members_.empty()) lead(members_, {"--bye", "--connect-seconds", "60"});
    members_.clear();
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
    return {ended_.begin(), ended_.end()};
  }

 private:
  const std::string port_, leader_;
  std::string members_ = {};
  std::list<Json> ended_ = {};
  std::vector<std::thread> threads_ = {};
};

const StringList kShort = {"--seconds", "0.05", "--max-bytes", "300000"};
StringList with(StringList words, const StringList& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void wait_for(int fd) {
  pollfd ready{fd, POLLIN, 0};
  ::poll(&ready, 1, 120000);
}

// A server that is none of ours: greets, and reads its work.
struct Impostor {
  Listening listening;
  std::unique_ptr<LineSocket> line = {};
  Json work = {};

  Impostor(const std::string& address, uint16_t port)
      : listening(std::move(listen_at(address, port)).value()) {}
  void take_work(const std::string& greeting) {
    wait_for(listening.socket.fd());
    line = std::make_unique<LineSocket>(accept_one(listening.socket), kLongestWork);
    CHECK(line->send(greeting + "\n", 60).ok());
    for (std::optional<std::string> text; !text;) {
      wait_for(line->fd());
      const bool more = line->read();
      text = line->take();
      if (text) work = parse_json(*text).value_or(Json());
      if (!more) return;
    }
  }
};
const std::string kGreeting = R"({"muster_group":1})";

}  // namespace

TEST_CASE("group: members on other nodes take part, in pairs too, and one wrong bit is placed", "[group]") {
  Servers servers(free_port());
  servers.serve("node2", "127.0.0.2");
  servers.serve("node3", "127.0.0.3");
  const std::string all = "node1=127.0.0.1,node2=127.0.0.2,node3=127.0.0.3";
  const Json three = servers.lead(all, kShort);
  CHECK(three["outcome"] == "measured");
  CHECK(three["metrics"]["ranks"]["value"] == 3);
  CHECK(three["metrics"]["busbw_mbps"]["value"] > 0);
  CHECK(three["detail"]["hosts"] == Json{"node1", "node2", "node3"});
  // The node that leads need not be a member.
  const Json pair = servers.lead("node3=127.0.0.3,node2=127.0.0.2",
                                 {"--load", "training", "--seconds", "0.05", "--model", "24", "--heads", "4",
                                  "--sequence", "7", "--layers", "2", "--threads", "1"});
  CHECK(pair["outcome"] == "measured");
  CHECK(pair["metrics"]["ranks"]["value"] == 2);
  CHECK(pair["detail"]["hosts"] == Json{"node3", "node2"});
  const Json wrong = servers.lead(all, with(kShort, {"--inject-flip", "2"}));
  CHECK(wrong["outcome"] == "corrupt");
  CHECK(wrong["blame"] == Json{"rank 2 on node3"});
  for (const Json& ended : servers.end()) {
    CHECK(ended["detail"]["ended"] == "bye");
    CHECK(ended["detail"]["loads"] == 3);
  }
}

TEST_CASE("group: a member without a server and one that serves other nodes are named, and nothing begins",
          "[group]") {
  const uint16_t port = free_port();
  Servers servers(port), others(port, "127.0.0.9");
  servers.serve("node2", "127.0.0.2");
  others.serve("node3", "127.0.0.3");
  const auto lost = [&](const std::string& who, const std::string& address) {
    // As soon as its server is there, node2 answers; that the other one does not takes the whole time.
    const Json out = servers.lead("node1=127.0.0.1,node2=127.0.0.2," + who + "=" + address,
                                  with(kShort, {"--connect-seconds", "3"}));
    CHECK(out["outcome"] == "failed");
    CHECK(out["metrics"].empty());
    CHECK(out["blame"] == Json{"rank 2 on " + who});
    return out["detail"]["lost"][0]["how"];
  };
  REQUIRE(servers.lead("node1=127.0.0.1,node2=127.0.0.2", kShort)["outcome"] == "measured");
  CHECK(lost("node4", "127.0.0.4") == "absent");
  REQUIRE(others.lead("node3=127.0.0.3", kShort)["outcome"] == "measured");  // it is there
  CHECK(lost("node3", "127.0.0.3") == "refused");
  CHECK(servers.end()[0]["detail"]["loads"] == 1);
}

TEST_CASE("group: a member that dies in the middle is named, and the others stay", "[group]") {
  const uint16_t port = free_port();
  Servers servers(port);
  servers.serve("node2", "127.0.0.2");
  Impostor dying("127.0.0.3", port);
  std::thread member([&] {
    dying.take_work(kGreeting);
    const auto work = work_from_json(dying.work["work"]);
    if (work.ok()) meet({work->members, work->rank, work->token, 60, 1}, std::move(dying.listening));
    dying.line = nullptr;
  });
  const std::string two = "node1=127.0.0.1,node2=127.0.0.2";
  const Json out = servers.lead(two + ",node3=127.0.0.3", kShort);
  member.join();
  CHECK(out["outcome"] == "failed");
  CHECK(out["blame"] == Json{"rank 2 on node3"});
  CHECK(out["detail"]["lost"][0]["how"] == "died");
  CHECK(servers.lead(two, kShort)["outcome"] == "measured");
}

TEST_CASE("group: what a member answers is not believed without looking", "[group]") {
  const uint16_t port = free_port();
  const Servers none(port);
  Impostor liar("127.0.0.3", port);
  std::thread member([&] {
    liar.take_work(kGreeting);
    CHECK(liar.line->send("{\"result\": [7]}\n", 60).ok());
  });
  const Json out = none.lead("node3=127.0.0.3", kShort);
  member.join();
  CHECK(out["outcome"] == "failed");
  CHECK(out["metrics"].empty());
  std::thread other([&] { liar.take_work("SSH-2.0-OpenSSH_9.2"); });
  const Json no_server = none.lead("node3=127.0.0.3", with(kShort, {"--connect-seconds", "1"}));
  other.join();
  CHECK(no_server["outcome"] == "failed");
  CHECK(no_server["blame"] == Json{"rank 0 on node3"});
}

TEST_CASE("group: a rank ends with the connection of the leader that began it", "[group]") {
  const uint16_t port = free_port();
  Servers servers(port);
  servers.serve("node2", "127.0.0.2");
  REQUIRE(servers.lead("node2=127.0.0.2", kShort)["outcome"] == "measured");
  Work work;
  work.token = "0123456789abcdef";
  work.rank = 1;
  work.members = {{"node1", "127.0.0.1", port}, {"node2", "127.0.0.2", port}};
  work.meet_seconds = work.deadline_seconds = 3600;  // for a member that never comes
  {
    auto socket = start_connect("127.0.0.1", "127.0.0.2", port);
    REQUIRE(socket.ok());
    LineSocket line(std::move(*socket), kLongestResult);
    wait_for(line.fd());
    REQUIRE(line.read());
    REQUIRE(line.send(line_of({{"work", to_json(work)}}), 60).ok());
  }
  CHECK(servers.lead("node2=127.0.0.2", kShort)["outcome"] == "measured");
  CHECK(servers.end()[0]["detail"]["loads"] == 3);
}

TEST_CASE("group: GPUs of several nodes meet on a fixed port, with each node's own program and libraries",
          "[group]") {
  const std::string folder = build_dir() + "/together_program_test";
  const Files files;
  const auto script = [&](const std::string& name, const std::string& text) {
    REQUIRE(files.write(folder + "/" + name, "#!/bin/sh\n" + text, 0755).ok());
    return folder + "/" + name;
  };
  const std::string good = script(
      "good",
      R"(echo "{\"check\":\"nccl\",\"outcome\":\"measured\",\"error\":\"\",\"blame\":[],\"metrics\":{\"ranks\":)"
      R"({\"value\":8,\"unit\":\"ranks\"}},\"detail\":{\"words\":\"$*\",\"path\":\"$LD_LIBRARY_PATH\"}}")");
  const std::string waits = script("waits", "exec sleep 600");
  Servers servers(free_port());
  servers.serve("node2", "127.0.0.2", {"--program", good, "--libs", "/shared/nccl"});
  const StringList load = {"--load", "nccl", "--gpus", "4", "--nccl-port", "7999"};
  const std::string two = "node1=127.0.0.1,node2=127.0.0.2";
  const Json out = servers.lead(two, with(load, {"--program", good}));
  CHECK(out["outcome"] == "measured");
  CHECK(out["metrics"]["gpus"]["value"] == 8);
  CHECK(out["metrics"]["ranks"]["value"] == 2);
  const Json& second = out["detail"]["nodes"][1];
  CHECK(second["host"] == "node2");
  CHECK(second["detail"]["words"].get<std::string>().starts_with(
      "nccl --nodes 2 --node 1 --root 127.0.0.1:7999 --gpus 0,1,2,3"));
  CHECK(second["detail"]["path"].get<std::string>().starts_with("/shared/nccl"));
  // One cannot take part: the others end theirs, which wait for it.
  Servers stuck(free_port());
  stuck.serve("node2", "127.0.0.2", {"--program", waits});
  const Json missing = stuck.lead(two, with(load, {"--program", folder + "/nothing"}));
  CHECK(missing["outcome"] == "unavailable");
  CHECK(missing["detail"]["nodes"][0]["detail"]["missing"] == "muster-accept-gpu");
  CHECK(missing["detail"]["nodes"][1]["detail"]["stopped"] == true);
}

TEST_CASE("group: work that makes no sense is refused before it is begun", "[group]") {
  Work fine;
  fine.token = "0123456789abcdef";
  fine.members = {{"a", "10.0.0.1", 7540}, {"b", "10.0.0.2", 7540}};
  REQUIRE(work_from_json(to_json(fine)).ok());
  const Json good = to_json(fine);
  const std::pair<const char*, Json> wrong[] = {
      {"token", "short"},      {"rank", 2},        {"rank", -1},    {"rank", "0"},    {"load", "rm -rf /"},
      {"members", Json()},     {"members", {{1}}}, {"seconds", -1}, {"max_bytes", 1}, {"gpus", 5000},
      {"deadline_seconds", 0}, {"load", "nccl"}};
  for (const auto& [key, value] : wrong) {
    Json bad = good;
    bad[key] = value;
    CAPTURE(key, dump_json(value));
    CHECK(work_from_json(bad).error().code == Code::invalid);
  }
}
