// Which errors open a host again, and with which user.
#include "controller/hosts/host_links.h"

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

class NoWire : public HostWire {
 public:
  void leave(std::function<void()> done) override { done(); }
};

// One host; each wire to it is kept as it was opened.
struct Bench {
  ManualReactor reactor;
  std::vector<HostWireOptions> opened;
  HostWireEvents last;
  std::vector<Error> gone;
  HostLinks links{reactor,
                  [this](HostWireOptions options, HostWireEvents events) {
                    opened.push_back(std::move(options));
                    last = std::move(events);
                    return std::make_unique<NoWire>();
                  },
                  events()};

  Bench() {
    HostWireOptions host;
    host.host = "gpu01";
    links.add(std::move(host));
    reactor.advance(0);
  }
  HostLinks::Events events() {
    HostLinks::Events out;
    out.hello = [](const std::string&, const HostHello&) {};
    out.looked = [](const std::string&, const HostLooked&) {};
    out.broken = [](const std::string&, const Error&) {};
    out.gone = [this](const std::string&, const Error& error) { gone.push_back(error); };
    return out;
  }
  // The wire of now is lost; the next one, if there is one, is open afterwards.
  void lose(Code code) {
    const auto lost = last.lost;
    lost(fail(code, "why"));
    reactor.advance(5 * kSecond);  // a wire that is lost later was not dropped, but not answered
  }
};

}  // namespace

TEST_CASE("host links: a sudo that does not answer makes a plain user, and costs no try", "[hosts]") {
  Bench bench;
  bench.lose(Code::timeout);
  REQUIRE(bench.opened.size() == 2);
  CHECK_FALSE(bench.opened[0].as_user);
  CHECK(bench.opened[1].as_user);
  CHECK(bench.opened[1].why_user == "why");
  bench.lose(Code::unavailable);
  bench.lose(Code::unavailable);
  REQUIRE(bench.opened.size() == 4);
  CHECK(bench.opened[3].as_user);
  bench.lose(Code::unavailable);
  CHECK(bench.opened.size() == 4);
  CHECK(bench.gone.size() == 1);
}

TEST_CASE("host links: a host that was reached as root is not taken as a plain user later", "[hosts]") {
  Bench bench;
  const auto looked = bench.last.looked;
  looked({});
  bench.lose(Code::timeout);
  REQUIRE(bench.opened.size() == 2);
  CHECK_FALSE(bench.opened[1].as_user);
}

TEST_CASE("host links: only what another try can help is tried again", "[hosts]") {
  Bench bench;
  const Code code = GENERATE(Code::unavailable, Code::denied, Code::failed, Code::invalid, Code::not_found);
  bench.lose(code);
  CHECK(bench.opened.size() == (code == Code::unavailable ? 2 : 1));
  CHECK(bench.gone.size() == (code == Code::unavailable ? 0 : 1));
}
