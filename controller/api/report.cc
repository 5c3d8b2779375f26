// The report of a run, in the reader's form.
#include "controller/acceptance.h"
#include "controller/api/handlers.h"
#include "controller/bringup.h"
#include "controller/services.h"

namespace muster::api {

void get_report(const CallPtr& call) {
  const int64_t run = std::strtoll(call->query("run", "0").c_str(), nullptr, 10);
  const auto report = make_report(call->services.store, call->services.bringup.executor(), run);
  if (!report.ok()) return call->error(report.error());
  const std::string format = call->query("format", "json");
  if (format == "html") return call->text(200, render_html(*report), "text/html; charset=utf-8");
  if (format == "junit") return call->text(200, render_junit(*report), "application/xml");
  if (format == "text") return call->text(200, render_text(*report));
  if (format == "json") return call->text(200, to_json_text(*report), "application/json");
  call->error(fail(Code::invalid, "format is one of html, json, junit, text"));
}

}  // namespace muster::api
