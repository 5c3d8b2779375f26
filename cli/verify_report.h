// Verifies that a file is the report that was signed, and says which report it is: an old good one must not
// pass for a new one. Pure functions, no I/O.
#pragma once

#include <string>

#include "base/time.h"
#include "controller/report/signature.h"

namespace muster::cli {

// As the signed text itself has it.
struct ReportIdentity {
  std::string cluster = {}, kind = {};
  int64_t run = 0;
  TimeMs started = 0, ended = 0;
};

// What the caller expects; "" and 0: any.
struct ExpectedReport {
  std::string cluster = {};
  int64_t run = 0;
  TimeMs since = 0;  // the run ended then or later
};

struct Verified {
  // other_report: signed by the trusted key, and not the one that is expected.
  enum class Verdict { valid, changed, other_key, other_report } verdict = Verdict::changed;
  std::string words = {};
  SignedReport report = {};
  ReportIdentity identity = {};  // empty if it is `changed`
};
// Verifies `text`. `trusted`: the key in its one-line form (controller/report/signature.h).
Verified verify_report_text(const std::string& text, const std::string& trusted,
                            const ExpectedReport& expected = {});

}  // namespace muster::cli
