// MetricsPort: serves /metrics, and nothing else, over plain HTTP to every client that reaches the address of
// `--metrics` (docs/threat-model.md). Requests carry no body. While the address cannot be used, perhaps
// because its interface is not up yet, that is a problem "metrics", and opening is retried. Thread: the
// reactor's. Requests are answered on the server's own, which needs the reactor once a second, however many
// there are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/alive.h"
#include "controller/options/options.h"
#include "sys/http/http.h"
#include "sys/reactor.h"

namespace muster {

class MetricsPort {
 public:
  using Text = std::function<const std::string&()>;  // of the page
  MetricsPort(Reactor& reactor, const DaemonOptions& options, std::map<std::string, std::string>& problems,
              Text text)
      : reactor_(reactor), options_(options), problems_(problems), text_(std::move(text)) {}
  ~MetricsPort() { close(); }
  MetricsPort(const MetricsPort&) = delete;
  MetricsPort& operator=(const MetricsPort&) = delete;

  // Has no effect without the option; a problem, and no more, if that is every network of this machine.
  void open();
  void close();
  uint16_t port() const { return server_ ? server_->port() : 0; }  // 0: not open

  static constexpr DurationMs kAgain = 10 * kSecond;

 private:
  class Page;
  static HttpResponse response(const HttpRequest& request, Page& page);
  void make_page();

  Reactor& reactor_;
  const DaemonOptions& options_;
  std::map<std::string, std::string>& problems_;
  const Text text_;
  Alive alive_;
  std::shared_ptr<Page> page_;  // of server_
  std::unique_ptr<HttpServer> server_;
  Reactor::TimerId timer_ = 0, fresh_ = 0;
};

}  // namespace muster
