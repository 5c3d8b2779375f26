#include "controller/metrics/service/metrics_port.h"

#include <condition_variable>
#include <mutex>

#include "controller/metrics/exposition.h"
#include "controller/metrics/service/metrics_service.h"
#include "sys/contain.h"
#include "sys/log.h"

namespace muster {

// The page, which the reactor's thread makes and the server's thread copies into its answers.
class MetricsPort::Page {
 public:
  using TextPtr = std::shared_ptr<const std::string>;
  // `request`: posts the task that calls set().
  explicit Page(std::function<void()> request) : request_(std::move(request)) {}

  // Thread: the server's. Waits while there is none; null once it was closed.
  TextPtr get() {
    std::unique_lock lock(mutex_);
    while (!text_ && !closed_) {
      if (!std::exchange(requested_, true)) request_();
      changed_.wait(lock);
    }
    return text_;
  }

  // Thread: the reactor's. Null: the page is too old.
  void set(TextPtr text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
    requested_ = false;
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::function<void()> request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TextPtr text_;
  bool requested_ = false, closed_ = false;
};

void MetricsPort::open() {
  if (!options_.metrics_closed.empty()) {
    const std::string why = "metrics are not served: '" + options_.metrics_closed +
                            "' is every network of this machine. Give --metrics one of its addresses, such "
                            "as 127.0.0.1 or the one in the cluster's network, and restart musterd";
    log::error(why);
    problems_["metrics"] = why;
  }
  if (options_.metrics.empty() || server_) return;
  HttpServerOptions http;
  http.address = options_.metrics;
  http.port = options_.metrics_port;
  http.threads = 1;
  http.max_unknown_body = 0;
  page_ = std::make_shared<Page>([this, alive = alive_.watch()] {
    reactor_.post([this, alive] {
      if (*alive) make_page();
    });
  });
  auto opened = start_http_server(http, [page = page_](HttpRequest request, ResponderPtr responder) {
    responder->respond(response(request, *page));
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
  reactor_.cancel(fresh_);
  if (page_) page_->close();  // the server's thread, which is joined below, may wait for it
  server_.reset();
}

void MetricsPort::make_page() {
  if (!server_) return;
  std::string text;  // empty: it could not be made
  contain_exceptions("the page of metrics", [&] { text = text_(); });
  page_->set(std::make_shared<const std::string>(std::move(text)));
  fresh_ = reactor_.after(MetricsService::kFresh, alive_.wrap([this] { page_->set(nullptr); }));
}

HttpResponse MetricsPort::response(const HttpRequest& request, Page& page) {
  if (request.path != "/metrics") return HttpResponse::text(404, "only /metrics is served here\n");
  if (request.method != "GET" && request.method != "HEAD") return HttpResponse::text(405, "GET only\n");
  const Page::TextPtr text = page.get();
  if (!text || text->empty()) return HttpResponse::text(503, "there are no metrics at present\n");
  HttpResponse answer = HttpResponse::text(200, *text);
  answer.headers["Content-Type"] = Exposition::kContentType;
  return answer;
}

}  // namespace muster
