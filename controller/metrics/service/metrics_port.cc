#include "controller/metrics/service/metrics_port.h"

#include "controller/metrics/exposition.h"
#include "sys/log.h"

namespace muster {

void MetricsPort::open() {
  if (options_.metrics.empty() || server_) return;
  HttpServerOptions http;
  http.address = options_.metrics;
  http.port = options_.metrics_port;
  http.threads = 1;
  http.max_unknown_body = 0;
  auto opened =
      start_http_server(http, [this, alive = alive_.watch()](HttpRequest request, ResponderPtr responder) {
        reactor_.post([this, alive, request = std::move(request), responder = std::move(responder)] {
          if (*alive) responder->respond(response(request));
        });
      });
  if (opened.ok()) {
    server_ = std::move(opened).value();
    problems_.erase("metrics");
    return;
  }
  const std::string& why = opened.error().message;
  if (!problems_.count("metrics"))  // retries are not logged
    log::error("metrics cannot be served", {{"address", options_.metrics}, {"error", why}});
  problems_["metrics"] = why;
  timer_ = reactor_.after(kAgain, alive_.wrap([this] { open(); }));
}

void MetricsPort::close() {
  reactor_.cancel(timer_);
  server_.reset();
}

HttpResponse MetricsPort::response(const HttpRequest& request) const {
  if (request.path != "/metrics") return HttpResponse::text(404, "only /metrics is served here\n");
  if (request.method != "GET" && request.method != "HEAD") return HttpResponse::text(405, "GET only\n");
  HttpResponse page = HttpResponse::text(200, text_());
  page.headers["Content-Type"] = Exposition::kContentType;
  return page;
}

}  // namespace muster
