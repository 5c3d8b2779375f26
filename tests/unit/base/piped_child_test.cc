#include "sys/piped_child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/gzip.h"
#include "sys/os.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Talk {
  std::unique_ptr<RealReactor> reactor = make_reactor(1);
  std::string out, err;
  int status = -1;
  std::unique_ptr<PipedChild> child;

  Result<std::unique_ptr<PipedChild>> start(const std::vector<std::string>& argv) {
    return PipedChild::start(*reactor, argv,
                             {.out = [this](std::string_view text) { out.append(text); },
                              .err = [this](std::string_view text) { err.append(text); },
                              .out_end = {},
                              .ended =
                                  [this](int code) {
                                    status = code;
                                    reactor->stop();
                                  }});
  }
  void begin(const std::vector<std::string>& argv) { child = start(argv).value(); }
};

}  // namespace

TEST_CASE("piped child: what goes in comes out, however much it is", "[base]") {
  Talk talk;
  talk.begin({"cat"});
  const auto much = std::make_shared<const std::string>(3u << 20, 'x');
  talk.child->send("first\n");
  talk.child->send(much);
  talk.child->send("last\n");
  talk.child->close_input();
  talk.reactor->run();
  CHECK(talk.status == 0);
  CHECK(talk.out == "first\n" + *much + "last\n");
  CHECK(talk.child->unsent() == 0);
}

TEST_CASE("piped child: all output is there before its end", "[base]") {
  Talk talk;
  talk.begin({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  talk.reactor->run();
  CHECK(talk.status == 3);
  CHECK(talk.out == "out\n");
  CHECK(talk.err == "err\n");
}

TEST_CASE("piped child: a process that it leaves behind does not hold it up", "[base]") {
  Talk talk;
  talk.begin({"/bin/sh", "-c", "sleep 1000 & echo $!"});
  talk.reactor->run();
  CHECK(talk.status == 0);
  CHECK(::kill(std::stoi(talk.out), SIGKILL) == 0);
}

TEST_CASE("piped child: it has a session of its own, and signals reach all of it", "[base]") {
  Talk talk;
  talk.begin({"/bin/sh", "-c", "ps -o sid= -p $$; echo; sleep 1000"});
  while (talk.out.find("\n\n") == std::string::npos) {
    talk.reactor->after(5, [&] { talk.reactor->stop(); });
    talk.reactor->run();
  }
  CHECK(std::stoi(talk.out) != ::getsid(0));
  talk.child->signal(SIGTERM);
  talk.reactor->run();
  CHECK(talk.status == 128 + SIGTERM);
}

TEST_CASE("piped child: one that takes nothing any more is no end of this process", "[base]") {
  Talk talk;
  talk.begin({"/bin/sh", "-c", "exec <&-; sleep 0.1; exit 5"});
  talk.child->send(std::string(1 << 20, 'x'));
  talk.reactor->run();
  CHECK(talk.status == 5);
}

TEST_CASE("piped child: no such program", "[base]") {
  Talk talk;
  CHECK(talk.start({"no-such-program"}).error().code == Code::not_found);
  CHECK(talk.start({}).error().code == Code::invalid);
}

TEST_CASE("piped child: it ends with the process that started it", "[base]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(ends[0]);
    Talk talk;
    // Inherits no descriptor but its own three.
    const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
    talk.begin({"/bin/sh", "-c", "exec 2>\"$1\"; echo ready >&2; exec sleep 1000", "sh", own});
    talk.reactor->run();
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[16] = {};
  REQUIRE(::read(ends[0], text, sizeof text) == 6);
  REQUIRE(::kill(owner, SIGKILL) == 0);
  CHECK(::read(ends[0], text, sizeof text) == 0);  // when the child is gone
  ::close(ends[0]);
  ::waitpid(owner, nullptr, 0);
}

TEST_CASE("gzip: there and back, and what is none", "[base]") {
  const std::string text = std::string(100000, 'a') + "end";
  const std::string packed = gzip(text).value();
  CHECK(packed.size() < 1000);
  CHECK(gunzip(packed, text.size()).value() == text);
  CHECK(gunzip(gzip("").value(), 0).value().empty());
  CHECK(gunzip(packed, text.size() - 1).error().code == Code::corrupt);
  CHECK(gunzip(packed.substr(0, packed.size() - 1), text.size()).error().code == Code::corrupt);
  CHECK(gunzip(packed + "x", text.size()).error().code == Code::corrupt);
  CHECK(gunzip("no gzip", 100).error().code == Code::corrupt);
}
