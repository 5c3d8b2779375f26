// Calls that wait for their turn at a BMC: which are made, and which are not any more. The BMC here is a port
// that never answers.
#include "controller/power/service/power_service.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "controller/power/waiter.h"
#include "kernels/common/connection.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

struct Queue {
  explicit Queue(const PowerService::Times& times) {
    auto opened = kernels::Listener::open("127.0.0.1", 0);
    REQUIRE(opened.ok());
    bmc.emplace(std::move(*opened));
    const auto where = [port = bmc->port()](const std::string& node) -> Result<PowerService::Where> {
      PowerService::Where at;
      at.driver = "redfish";
      at.target.node = NodeName(node);
      at.target.address = "127.0.0.1:" + std::to_string(port);
      return at;
    };
    service = std::make_unique<PowerService>(*reactor, dir.path(""), where, times);
    thread = std::thread([this] { reactor->run(); });
  }
  ~Queue() {
    reactor->stop();
    thread.join();
  }
  // Until a call reached the BMC; it hangs up and is gone.
  void hang_up() {
    pollfd p{bmc->fd(), POLLIN, 0};
    REQUIRE(::poll(&p, 1, 60'000) == 1);
    const int fd = ::accept(bmc->fd(), nullptr, nullptr);
    CHECK(fd >= 0);
    bmc.reset();
    ::close(fd);
  }

  TempDir dir;
  std::optional<kernels::Listener> bmc;
  std::unique_ptr<RealReactor> reactor = make_reactor(2);
  std::unique_ptr<PowerService> service;
  std::thread thread;
};

}  // namespace

TEST_CASE("a netboot that was forgotten before its turn is not carried out, one that was not is", "[power]") {
  Queue queue({2 * kMinute, 2 * kSecond});
  std::promise<Code> look, forgotten, wanted;
  queue.reactor->post([&] {
    queue.service->state("n1", [&](Result<PowerState> state) {
      look.set_value(state.ok() ? Code::failed : state.error().code);
    });
    queue.service->netboot(
        "n1", [&](Status done) { forgotten.set_value(done.ok() ? Code::failed : done.error().code); });
    queue.service->netboot(
        "n2", [&](Status done) { wanted.set_value(done.ok() ? Code::failed : done.error().code); });
    queue.service->forget("n1");
    queue.service->forget("n3");  // has none
  });
  queue.hang_up();
  CHECK(look.get_future().get() != Code::cancelled);  // it was under way
  CHECK(forgotten.get_future().get() == Code::cancelled);
  CHECK(wanted.get_future().get() == Code::unavailable);  // it tried: nothing listens any more
}

TEST_CASE("a BMC that refuses is tried for a minute for a run, and for seconds for an operator", "[power]") {
  Queue queue({2 * kMinute, kMinute});
  queue.bmc.reset();  // nothing listens any more
  const auto slept_for = [&queue](bool operator_waits) {
    auto slept = std::make_shared<std::atomic<DurationMs>>(0);
    std::promise<Code> answer;
    queue.reactor->post([&queue, &answer, operator_waits, slept] {
      queue.service->wait_by({[slept, now = real_waiter().now] { return now() + *slept; },
                              [slept](DurationMs span) { *slept += span; }});
      const auto done = [&answer](const Result<PowerState>& state) {
        answer.set_value(state.ok() ? Code::failed : state.error().code);
      };
      if (operator_waits)
        queue.service->state_now("n1", done);
      else
        queue.service->state("n1", done);
    });
    CHECK(answer.get_future().get() == Code::unavailable);
    return slept->load();
  };
  CHECK(slept_for(false) > 30 * kSecond);
  const DurationMs for_operator = slept_for(true);
  CHECK(for_operator > 0);
  CHECK(for_operator < 10 * kSecond);
}

TEST_CASE("a call whose turn comes too late is not made", "[power]") {
  Queue queue({-1, kSecond});  // everything is too late
  std::promise<Error> late;
  queue.reactor->post([&] {
    queue.service->power_off(
        "n1", [&](Status done) { late.set_value(done.ok() ? fail(Code::failed, "made") : done.error()); });
  });
  const Error error = late.get_future().get();
  CHECK(error.code == Code::unavailable);
  CHECK(error.message.find("this BMC was not contacted") != std::string::npos);
  pollfd p{queue.bmc->fd(), POLLIN, 0};
  CHECK(::poll(&p, 1, 0) == 0);  // no call came
}
