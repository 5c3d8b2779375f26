// Verifies that a file is the report that was signed. Pure functions, no I/O.
#pragma once

#include <string>

#include "controller/report/signature.h"

namespace muster::cli {

struct Verified {
  enum class Verdict { valid, changed, other_key } verdict = Verdict::changed;
  std::string words = {};
  SignedReport report = {};
};
// Verifies `text`. `trusted`: the key in its one-line form (controller/report/signature.h).
Verified verify_report_text(const std::string& text, const std::string& trusted);

}  // namespace muster::cli
