// What throws, and text that is no UTF-8, in a whole controller: one caller's trouble, never the controller's
// end.
#include "tests/unit/api/controller.h"

#include "controller/link/event_log.h"

using namespace muster;
using api::Listener;

namespace {

// Keeps the first piece of a stream.
class FirstPiece : public Responder {
 public:
  explicit FirstPiece(std::promise<std::string>& promise) : promise_(promise) {}
  void respond(HttpResponse response) override { promise_.set_value(response.body); }
  void start_stream(HttpResponse) override {}
  bool write(std::string chunk) override {
    if (!std::exchange(reported_, true)) promise_.set_value(std::move(chunk));
    return false;
  }
  void end_stream() override {}

 private:
  std::promise<std::string>& promise_;
  bool reported_ = false;
};

}  // namespace

TEST_CASE("an event whose text is no UTF-8 reaches those who follow", "[api]") {
  testing::Controller c;
  c.on_reactor([&] { c.services().events.add(0, "n\xc3", "log", {{"text", "cut in the middle: \xc3"}}); });
  std::promise<std::string> promise;
  auto piece = promise.get_future();
  c.on_reactor([&] {
    HttpRequest request;
    request.target = "/v1/events?after=0";
    REQUIRE(parse_target(request).ok());
    api::dispatch(c.services(), Listener::local, request, std::make_shared<FirstPiece>(promise), {});
  });
  REQUIRE(piece.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(piece.get().find("cut in the middle: \xef\xbf\xbd") != std::string::npos);
  CHECK(c.call(Listener::local, "GET", "/v1/version").status == 200);
}

TEST_CASE("a task of the controller that throws ends only itself", "[api]") {
  testing::Controller c;
  std::promise<void> thrown;
  c.services().reactor.post([&] {
    thrown.set_value();
    throw std::runtime_error("meant to be");
  });
  thrown.get_future().get();
  CHECK(c.call(Listener::local, "GET", "/v1/version").status == 200);
}
