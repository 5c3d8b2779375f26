// What stands at a path that an operator gave, and the Unix socket, which is one of them.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "sys/http/http.h"
#include "sys/path_kind.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

// Leaves what a server that was killed leaves: a socket without a listener.
void leave_socket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
}

Result<std::unique_ptr<HttpServer>> server_at(const std::string& path) {
  HttpServerOptions options;
  options.unix_path = path;
  return start_http_server(options, [](const HttpRequest&, const ResponderPtr& responder) {
    responder->respond(HttpResponse::text(200, "here"));
  });
}

struct PathsOfEachKind {
  TempDir dir;
  PathsOfEachKind() {
    dir.write("file", "precious");
    fs::create_directories(dir.path("folder"));
    fs::create_symlink("file", dir.path("link-to-file"));
    fs::create_symlink("folder", dir.path("link-to-folder"));
    fs::create_symlink("nowhere", dir.path("link-to-nothing"));
    REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
    leave_socket(dir.path("socket"));
  }
};

}  // namespace

TEST_CASE("a path that an operator gave is refused where something else is than is expected") {
  const PathsOfEachKind all;
  struct Expectation {
    std::vector<PathKind> wanted;
    std::vector<std::string> fine, wrong;
  };
  const std::vector<Expectation> expectations = {
      {{PathKind::nothing},
       {"absent"},
       {"file", "folder", "link-to-file", "link-to-folder", "link-to-nothing", "pipe", "socket"}},
      {{PathKind::file}, {"file", "link-to-file"}, {"absent", "folder", "link-to-nothing", "pipe", "socket"}},
      {{PathKind::folder, PathKind::nothing},
       {"absent", "folder", "link-to-folder", "link-to-nothing"},
       {"file", "link-to-file", "pipe", "socket"}},
      {{PathKind::socket, PathKind::nothing},
       {"absent", "socket"},
       {"file", "folder", "link-to-file", "link-to-nothing", "pipe"}},
  };
  for (const auto& expectation : expectations) {
    for (const auto& name : expectation.fine) {
      INFO(name);
      CHECK(expect_at(all.dir.path(name), expectation.wanted).ok());
      CHECK(wrong_path(all.dir.path(name), expectation.wanted) == "");
    }
    for (const auto& name : expectation.wrong) {
      INFO(name);
      CHECK_FALSE(expect_at(all.dir.path(name), expectation.wanted).ok());
      CHECK(wrong_path(all.dir.path(name), expectation.wanted).find(all.dir.path(name)) == 0);
    }
  }
  CHECK(expect_at(all.dir.path("file"), {PathKind::nothing}).error().code == Code::conflict);
  CHECK(expect_at(all.dir.path("absent"), {PathKind::file}).error().code == Code::not_found);
  CHECK(expect_at(all.dir.path("file/below"), {PathKind::nothing}).error().code == Code::failed);
  CHECK(expect_at("/dev/null", {PathKind::file, PathKind::folder}).error().code == Code::invalid);
  CHECK(wrong_path("", {PathKind::folder}) == "");  // the option was not given
}

TEST_CASE("a Unix socket without a listener is replaced; one that answers stays with its program") {
  const PathsOfEachKind all;
  const std::string path = all.dir.path("socket");
  auto first = server_at(path);
  REQUIRE(first.ok());
  CHECK(server_at(path).error().code == Code::unavailable);
  auto client = std::move(make_http_client({.base = "unix:" + path})).value();
  CHECK(client->request({.target = "/"}, kMinute)->body == "here");
  // The first server's name is taken away, and another program's put there: its end removes only its own.
  fs::remove(path);
  auto second = server_at(path);
  REQUIRE(second.ok());
  first->reset();
  CHECK(fs::is_socket(fs::symlink_status(path)));
  auto other = std::move(make_http_client({.base = "unix:" + path})).value();
  CHECK(other->request({.target = "/"}, kMinute)->body == "here");
  second->reset();
  CHECK_FALSE(fs::exists(fs::symlink_status(path)));
}
