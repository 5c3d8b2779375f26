// What other users of a machine, and hosts of other networks, find open: files that are being made, ports.
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "controller/store/migrate.h"
#include "controller/store/sqlite_store.h"
#include "sys/http/http.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/shipped.h"

namespace muster::tests {
namespace {

// Names that appeared in a folder, and whether each was a folder.
class Appeared {
 public:
  explicit Appeared(const std::string& folder) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(::inotify_add_watch(fd_, folder.c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
  }
  ~Appeared() { ::close(fd_); }
  std::map<std::string, bool> names() const {
    std::map<std::string, bool> out;
    alignas(inotify_event) char buffer[16384];
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      out[buffer + at + sizeof event] = (event.mask & IN_ISDIR) != 0;
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
    return out;
  }

 private:
  int fd_;
};

unsigned mode_at(const std::string& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// Of the playbooks of a cluster of one node: parameters by the id of the step.
std::map<std::string, Json> monitoring_steps() {
  const std::string text = fmt::format(R"(cluster: harbour
network:
  provisioning: {{ cidr: 10.20.0.0/24, dhcp: managed }}
  bmc: {{ cidr: 10.20.1.0/24 }}
users:
  ops: {{ keys: [ "{}" ], sudo: true }}
images:
  plain: {{ recipe: debian-12, kernel: cloud, bake: [ base ] }}
nodes:
  - name: login01
    role: login
    power: {{ driver: redfish, address: 10.20.1.11, secret: bmc }}
    mac: "52:54:00:77:00:01"
    address: 10.20.0.31
    image: plain
    disks: {{ os: {{ match: {{ serial: "OS*", count: 1 }} }} }}
roles:
  login: {{ playbooks: [ base, monitoring ] }}
)",
                                       testing::kKey);
  const Plan plan = testing::planned_of(testing::shipped_input(text));
  std::map<std::string, Json> params;
  for (const auto& action : plan.actions)
    for (const Json& step : action.params.value("steps", Json::array()))
      params[step["id"].get<std::string>()] = step["params"];
  return params;
}

}  // namespace

FIELD_CASE("backup-readable-while-made") {
  const TempDir dir;
  REQUIRE(open_sqlite_store(
              dir.path("muster.db"), [](const Reactor::Task&) {}, 1)
              .ok());
  std::filesystem::create_directories(dir.path("all"));
  REQUIRE(::chmod(dir.path("all").c_str(), 01777) == 0);
  const Appeared appeared(dir.path("all"));
  const mode_t before = ::umask(0);
  const Status made = backup_store(dir.path("muster.db"), dir.path("all/m.db"));
  ::umask(before);
  REQUIRE(made.ok());
  CHECK(mode_at(dir.path("all/m.db")) == 0600);
  // SQLite's own copy, whose mode is the process's, was never here: only the finished one.
  const auto names = appeared.names();
  CHECK(names.count("m.db") == 1);
  CHECK(names.size() == 1);
  for (const auto& [name, is_folder] : names) {
    INFO(name);
    CHECK_FALSE(is_folder);
    CHECK(name.starts_with("m.db"));
  }
  // What an operator may give instead of a name: refused before the copy is made, and nothing is left.
  std::filesystem::create_directories(dir.path("all/folder"));
  for (const char* name : {"all/folder", "all/m.db"}) {
    INFO(name);
    CHECK(backup_store(dir.path("muster.db"), dir.path(name)).error().code == Code::conflict);
  }
  CHECK(backup_store(dir.path("muster.db"), "/dev/null").error().code == Code::conflict);
  size_t left = 0;
  for (const auto& one : std::filesystem::directory_iterator(dir.path("all"))) left += !one.path().empty();
  CHECK(left == 2);  // the copy and the folder
}

FIELD_CASE("backup-readable-while-made: its space is needed once, and where it goes") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root, and a folder in which only root can replace anything");
    return;
  }
  const TempDir dir, target("/run");
  REQUIRE(open_sqlite_store(
              dir.path("muster.db"), [](const Reactor::Task&) {}, 1)
              .ok());
  const Appeared beside(dir.path("")), there(target.path(""));
  REQUIRE(backup_store(dir.path("muster.db"), target.path("m.db")).ok());
  for (const auto& [name, is_folder] : beside.names()) {
    INFO(name);
    CHECK_FALSE(is_folder);
  }
  // The private folder and the copy, which is not written a second time.
  const auto names = there.names();
  CHECK(names.size() == 2);
  CHECK(names.count("m.db") == 1);
  CHECK(mode_at(target.path("m.db")) == 0600);
  size_t left = 0;
  for (const auto& one : std::filesystem::directory_iterator(target.path(""))) left += !one.path().empty();
  CHECK(left == 1);
}

FIELD_CASE("prometheus-everywhere") {
  std::map<std::string, Json> params = monitoring_steps();
  const std::map<std::string, std::string> listens = {
      {"monitoring/Prometheus settings", "--web.listen-address=10.20.0.31:9090"},
      {"monitoring/exporter settings", "--web.listen-address=10.20.0.31:9100"}};
  for (const auto& [id, word] : listens) {
    INFO(id);
    REQUIRE(params.count(id) == 1);
    const std::string content = params[id]["content"].get<std::string>();
    CHECK(content.find("\"" + word + " ") != std::string::npos);
    CHECK(content.find("listen-address") == content.rfind("listen-address"));
  }
  // And the test of its targets reads it there.
  REQUIRE(params.count("monitoring/all targets up") == 1);
  CHECK(params["monitoring/all targets up"]["url"].get<std::string>() == "http://10.20.0.31:9090");
}

FIELD_CASE("exporter-before-its-address") {
  std::map<std::string, Json> params = monitoring_steps();
  for (const char* what : {"exporter", "Prometheus"}) {
    INFO(what);
    const std::string name = what;
    Json& drop_in = params["monitoring/" + name + " after its address"];
    REQUIRE(drop_in.is_object());
    const std::string unit = params["monitoring/" + name]["names"][0].get<std::string>();
    CHECK(drop_in["path"].get<std::string>() == "/etc/systemd/system/" + unit + ".service.d/10-muster.conf");
    const std::string content = drop_in["content"].get<std::string>();
    for (const char* line : {"\nAfter=network-online.target\n", "\nWants=network-online.target\n",
                             "\nStartLimitIntervalSec=0\n", "\nRestart=on-failure\n", "\nRestartSec=5\n"}) {
      INFO(line);
      CHECK(content.find(line) != std::string::npos);
    }
    // Where systemd reads them.
    CHECK(content.find("StartLimitIntervalSec") < content.find("[Service]"));
    CHECK(content.find("RestartSec") > content.find("[Service]"));
  }
}

FIELD_CASE("socket-option-deletes-file") {
  const TempDir dir;
  dir.write("file", "precious");
  std::filesystem::create_directories(dir.path("folder"));
  std::filesystem::create_symlink("file", dir.path("link"));
  REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
  for (const char* name : {"file", "folder", "link", "pipe"}) {
    INFO(name);
    const auto before = std::filesystem::symlink_status(dir.path(name)).type();
    HttpServerOptions options;
    options.unix_path = dir.path(name);
    const auto opened = start_http_server(options, [](const HttpRequest&, const ResponderPtr&) {});
    CHECK(opened.error().code == Code::invalid);
    CHECK(std::filesystem::symlink_status(dir.path(name)).type() == before);
  }
  CHECK(dir.read("file") == "precious");
}

FIELD_CASE("socket-of-a-live-sibling") {
  testing::Controller first, second;
  first.open();
  const auto answers = [&] {
    auto client = std::move(make_http_client({.base = "unix:" + first.socket()})).value();
    const auto answer = client->request({.target = "/v1/version"}, kMinute);
    return answer.ok() && answer->status == 200;
  };
  REQUIRE(answers());
  HttpServerOptions options;
  options.unix_path = first.socket();
  const auto refused = start_http_server(options, [](const HttpRequest&, const ResponderPtr&) {});
  CHECK(refused.error().code == Code::unavailable);
  CHECK(answers());
  // A link to it is no way to take it either.
  std::filesystem::create_symlink(first.socket(), second.socket());
  options.unix_path = second.socket();
  CHECK(start_http_server(options, [](const HttpRequest&, const ResponderPtr&) {}).error().code ==
        Code::invalid);
  CHECK(answers());
}

FIELD_CASE("join-behind-translation") {
  testing::Controller controller(source_dir() + "/playbooks");
  std::string site = field_input("join-behind-translation", "site.yaml");
  REQUIRE(controller.call(api::Listener::local, "PUT", "/v1/spec", site).status == 200);
  const std::string token = controller.token_for("crane01"), key = pki::make_key().value();
  const auto join_from = [&](uint16_t port) {
    wire::JoinRequest join;
    join.node = "crane01";
    join.token = token;
    join.csr_pem = pki::make_csr(key, join.node).value();
    join.boot_id = "b";
    HttpRequest request;
    request.method = "POST";
    request.target = "/agent/v1/join";
    request.body = wire::to_json(join).dump();
    request.remote = "10.20.0.11";
    request.remote_port = port;
    return controller.call(api::Listener::tls, request);
  };
  const auto refused = join_from(50123);
  CHECK(refused.status == 403);
  CHECK(refused.body.find("network.join_from_any_port") != std::string::npos);
  site.insert(site.find("  bmc:"), "  join_from_any_port: true\n");
  REQUIRE(controller.call(api::Listener::local, "PUT", "/v1/spec", site).status == 200);
  CHECK(join_from(50123).status == 200);
}

}  // namespace muster::tests
