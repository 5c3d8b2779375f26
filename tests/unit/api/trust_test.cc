// Which clients the servers take for known before they read a body, from what the database says at that
// moment.
#include "base/digest.h"
#include "base/wire.h"
#include "controller/api/trust.h"
#include "controller/store/sqlite_store.h"
#include "sys/pki.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::trust_of;
using testing::Controller;

namespace {

HttpRequest shows(const std::string& node, const std::string& serial,
                  const std::string& organization = "muster-agent") {
  HttpRequest head;
  head.peer = node;
  head.peer_serial = serial;
  head.peer_organization = organization;
  return head;
}

}  // namespace

TEST_CASE(
    "known is who has the operator's token or a good certificate of a declared node, and no other client",
    "[api]") {
  Controller controller;
  const auto reader = CertificateReader::open(controller.state() + "/muster.db").value();
  const auto trust = [&](const HttpRequest& head) {
    return trust_of(head, "secret", [&](const std::string& serial) { return reader->find(serial); });
  };
  const auto write = [&](std::vector<Write> rows) {
    std::promise<Status> written;
    controller.on_reactor(
        [&] { controller.services().store.write(rows, [&](Status status) { written.set_value(status); }); });
    REQUIRE(written.get_future().get().ok());
  };
  CertificateRow contested{"0c", "node03", "f", 3};
  contested.contested = true;
  write({CertificateRow{"0a", "node01", "f", 3}, CertificateRow{"0b", "node02", "f", 3}, contested,
         CertificateRow{"0d", "unknown-52:54:00:00:00:09", "f", 3}});
  CHECK(trust(HttpRequest()) == Trust::unknown);
  CHECK(trust(shows("node01", "0a")) == Trust::known);
  CHECK(trust(shows("node01", "0a", "muster")) == Trust::unknown);
  CHECK(trust(shows("node02", "0a")) == Trust::unknown);
  CHECK(trust(shows("node01", "ff")) == Trust::unknown);
  CHECK(trust(shows("node03", "0c")) == Trust::unknown);
  CHECK(trust(shows("unknown-52:54:00:00:00:09", "0d")) == Trust::guest);
  // From the moment on that it is revoked, for the next request.
  write({RevokeCertificates{"node01"}});
  CHECK(trust(shows("node01", "0a")) == Trust::unknown);
  CHECK(trust(shows("node02", "0b")) == Trust::known);

  HttpRequest with_token = shows("node01", "0a");
  with_token.headers["Authorization"] = "Bearer secret";
  CHECK(trust(with_token) == Trust::known);
  with_token.headers["Authorization"] = "Bearer secre";
  CHECK(trust(with_token) == Trust::unknown);
}
