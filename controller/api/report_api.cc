// The report of a run, in the reader's form, and the key it is signed with.
#include "controller/bringup/conclude.h"
#include "controller/api/handlers.h"
#include "controller/trust/authority.h"
#include "controller/bringup/bringup.h"
#include "controller/services.h"

namespace muster::api {

void get_report(const CallPtr& call) {
  const int64_t run = std::strtoll(call->query("run", "0").c_str(), nullptr, 10);
  const std::string format = call->query("format", "json");
  // Byte for byte as it was signed.
  if (format == "json")
    if (const auto text = signed_report(call->services.store, run); text.ok())
      return call->text(200, *text, "application/json");
  const auto report = report_of(call->services.store, call->services.bringup.executor(), run);
  if (!report.ok()) return call->error(report.error());
  if (format == "html") return call->text(200, render_html(*report), "text/html; charset=utf-8");
  if (format == "junit") return call->text(200, render_junit(*report), "application/xml");
  if (format == "text") return call->text(200, render_text(*report));
  if (format == "flat") return call->text(200, render_flat(*report), "application/jsonl");
  if (format == "json") return call->text(200, to_json_text(*report), "application/json");
  call->error(fail(Code::invalid, "format is one of html, json, junit, text, flat"));
}

void get_report_key(const CallPtr& call) {
  call->text(200, call->services.authority.report_key().certificate_pem, "application/x-pem-file");
}

}  // namespace muster::api
