// What the field cases of Redfish share: a lab BMC whose answers a case replaces, a driver as the controller
// has it, and the service that keeps what it knows of BMCs between calls.
#pragma once

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/power/logins.h"
#include "controller/power/redfish.h"
#include "controller/power/service/power_service.h"
#include "controller/power/wrap.h"
#include "tests/fakes/bmc_bench.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {

constexpr DurationMs kCall = kMinute;

inline lab::BmcProfile profile(const std::string& name) { return *lab::find_profile(name); }

// What a case's answer.json holds: status, headers, body.
inline HttpResponse field_answer(const std::string& name, const std::string& file = "answer.json") {
  const Json read = Json::parse(field_input(name, file));
  auto answer = HttpResponse::json(read["status"].get<int>(), read.value("body", Json::object()).dump());
  const Json headers = read.value("headers", Json::object());
  for (const auto& [key, value] : headers.items()) answer.headers[key] = value.get<std::string>();
  return answer;
}

class FieldBmc : public BmcBench {
 public:
  // Answers given in the BMC's place.
  struct Rule {
    std::string method, end_of_path;
    HttpResponse answer;
    int times = 1'000'000;
    TimeMs until = 1'000'000'000;
    std::string after = {};  // not before such a request was seen: "POST", "PATCH"
    int given = 0;
  };

  explicit FieldBmc(const lab::BmcProfile& p) : BmcBench(p) {
    before = [this](const HttpRequest& request) { return instead_of(request); };
  }
  explicit FieldBmc(const std::string& name) : FieldBmc(profile(name)) {}
  void rule(Rule rule) { rules_.push_back(std::move(rule)); }
  void starts_on() {
    machine.start();
    machine.boot();
  }
  std::unique_ptr<Power> power() { return with_retries(make_redfish(target, waiter()), waiter(), 7); }
  long count(const std::string& what) const {
    return std::count_if(seen.begin(), seen.end(), [&](const auto& one) { return one.starts_with(what); });
  }
  // Changes the JSON of this resource.
  void shows(const std::string& path, std::function<void(Json&)> change) {
    changes_.emplace_back(path, std::move(change));
    after = [this](const HttpRequest& request, HttpResponse& response) {
      for (const auto& [at, apply] : changes_) {
        Json body = parse_json(response.body).value_or(Json());
        if (request.method != "GET" || request.path != at || !body.is_object()) continue;
        apply(body);
        response.body = body.dump();
      }
    };
  }
  bool requested(const std::string& method) const { return count(method + " /redfish/v1/Systems") > 0; }

 private:
  std::optional<HttpResponse> instead_of(const HttpRequest& request) {
    for (Rule& rule : rules_) {
      const std::string& end = rule.end_of_path;
      const bool meant = request.method == rule.method && request.path.size() >= end.size() &&
                         request.path.compare(request.path.size() - end.size(), end.size(), end) == 0;
      if (!meant || rule.given >= rule.times || clock >= rule.until) continue;
      if (!rule.after.empty() && !requested(rule.after)) continue;
      ++rule.given;
      return rule.answer;
    }
    return std::nullopt;
  }

  std::vector<Rule> rules_;
  std::vector<std::pair<std::string, std::function<void(Json&)>>> changes_;
};

// The service of the controller over one such BMC, by the BMC's clock.
class FieldService {
 public:
  explicit FieldService(FieldBmc& bmc) {
    PowerTarget target = bmc.target;
    target.on_pin = {};
    target.on_refused = {};
    const auto where = [target](const std::string&) -> Result<PowerService::Where> {
      PowerService::Where at;
      at.driver = "redfish";
      at.target = target;
      return at;
    };
    service_ = std::make_unique<PowerService>(*reactor_, dir_.path(""), where);
    service_->wait_by(bmc.waiter());
    thread_ = std::thread([this] { reactor_->run(); });
  }
  ~FieldService() {
    reactor_->stop();
    thread_.join();
  }
  Status state() {
    return wait([this](PowerService::Done done) {
      service_->state("gpu01", [done](Result<PowerState> read) {
        done(read.ok() ? Status(Ok{}) : Status(read.error()));
      });
    });
  }
  Status on() {
    return wait([this](PowerService::Done done) { service_->power_on("gpu01", std::move(done)); });
  }
  Status off() {
    return wait([this](PowerService::Done done) { service_->power_off("gpu01", std::move(done)); });
  }
  Status netboot() {
    return wait([this](PowerService::Done done) { service_->netboot("gpu01", std::move(done)); });
  }

 private:
  Status wait(const std::function<void(PowerService::Done)>& call) {
    std::promise<Status> promise;
    reactor_->post([&] { call([&](Status status) { promise.set_value(std::move(status)); }); });
    return promise.get_future().get();
  }

  TempDir dir_;
  std::unique_ptr<RealReactor> reactor_ = make_reactor(2);
  std::unique_ptr<PowerService> service_;
  std::thread thread_;
};

inline bool is_ok(const Status& status) {
  UNSCOPED_INFO((status.ok() ? "ok" : status.error().message));
  return status.ok();
}

}  // namespace muster::tests
