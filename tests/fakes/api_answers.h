// A controller's API on a Unix socket, for the command line: one JSON answer per path, and what was
// requested.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_dump.h"
#include "sys/http/http.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class ApiAnswers {
 public:
  // By path, without its query. Other paths: 404.
  explicit ApiAnswers(std::map<std::string, Json> answers) : answers_(std::move(answers)) {
    HttpServerOptions options;
    options.unix_path = dir_.path("sock");
    auto started = start_http_server(
        options, [this](HttpRequest request, ResponderPtr out) { out->respond(answer_to(request)); });
    REQUIRE(started.ok());
    server_ = std::move(started).value();
  }

  Ran run(std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", dir_.path("sock")});
    return muster_command(words);
  }
  // "POST /v1/power/gpu01/off", in the order in which they came.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  HttpResponse answer_to(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.target);
    const auto found = answers_.find(request.path);
    if (found == answers_.end())
      return HttpResponse::json(404, R"({"code": "not_found", "message": "no such thing"})");
    return HttpResponse::json(200, dump_json(found->second));
  }

  const std::map<std::string, Json> answers_;
  TempDir dir_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace muster::testing
