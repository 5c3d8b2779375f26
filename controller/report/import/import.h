// Imports the output of other tools, for comparison with our own measurements: nccl-tests, gpu-burn,
// nvbandwidth, fio (JSON), ibnetdiscover.
//
// Imported values never affect a verdict: muster did not measure them, and the machine is unknown. Nothing in
// the output disappears: what is not among the values is in `left_out` with the reason, and what shows a
// fault is a problem. A value is held to a figure only if it was measured as the figure was. Malformed input
// is Code::invalid with the line; an incomplete table is rejected. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

struct ImportedValue {
  std::string name = {};     // "busbw", "read_mbps"
  std::string subject = {};  // size, GPU, job
  double value = 0;
  std::string unit = {};
  std::string like = {};  // our own check that measures the same: "local storage/read_mbps"; "" for none
  double to_ours = 1;     // factor into our unit
  std::optional<double> expected = {};  // what a healthy part reaches (controller/report/expected.h)
  std::string expected_text = {};       // its source; without one: why there is none
};

struct NotImported {
  std::string what = {}, why = {};  // "wrong elements", "not checked in 12 of 12 rows"
};

struct Imported {
  std::string format = {};
  std::string title = {};  // one line: what was measured on what
  std::vector<ImportedValue> values = {};
  std::vector<std::string> problems = {};  // what the output itself shows to be wrong
  std::vector<NotImported> left_out = {};
};

const std::vector<std::string>& import_formats();
// Imports an output; `format` "" means that the format is detected from the content. A file may hold several
// runs of the tool, one after the other: one that cannot be read is a problem if another can.
Result<Imported> import_output(const std::string& text, const std::string& format = "");

}  // namespace muster
