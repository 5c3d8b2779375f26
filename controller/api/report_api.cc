// The report of a run, in the requested format, and the key that it is signed with.
#include "controller/api/from_archive.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/conclude.h"
#include "controller/bringup/report_forms.h"
#include "controller/executor/executor.h"
#include "controller/trust/authority.h"

namespace muster::api {
namespace {

const char* type_of(ReportForm form) {
  switch (form) {
    case ReportForm::html:
      return "text/html; charset=utf-8";
    case ReportForm::json:
      return "application/json";
    case ReportForm::junit:
      return "application/xml";
    case ReportForm::flat:
      return "application/jsonl";
    case ReportForm::text:
      break;
  }
  return nullptr;  // keep the type that HttpResponse::text sets
}

Result<HttpResponse> render(RunArchive& archive, const KnownOfRun& run, ReportForm form) {
  TRY(auto body, report_in(form, archive, run));
  HttpResponse response = HttpResponse::text(200, std::move(body));
  if (const char* type = type_of(form)) response.headers["Content-Type"] = type;
  return response;
}

}  // namespace

void get_report(const CallPtr& call) {
  const auto form = report_form(call->query("format", "json"));
  if (!form) return call->error(fail(Code::invalid, "`format` must be one of html, json, junit, text, flat"));
  const auto row = call->services.store.run(std::strtoll(call->query("run", "0").c_str(), nullptr, 10));
  if (!row.ok()) return call->error(row.error());
  call->services.archive.answer(call, [run = known_of(call->services.executor, *row), form = *form](
                                          RunArchive& archive) { return render(archive, run, form); });
}

void get_report_key(const CallPtr& call) {
  call->text(200, call->services.authority.report_key().certificate_pem, "application/x-pem-file");
}

}  // namespace muster::api
