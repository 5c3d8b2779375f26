// Imports the output of other tools, for comparison with our own measurements: nccl-tests, gpu-burn,
// nvbandwidth, fio (JSON), ibnetdiscover.
//
// Imported values never affect a verdict: muster did not measure them, and the machine is unknown. Malformed
// input is Code::invalid with the line; an incomplete table is rejected. Thread safety: stateless functions.
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
  std::string expected_text = {};
};

struct Imported {
  std::string format = {};
  std::string title = {};  // one line: what was measured on what
  std::vector<ImportedValue> values = {};
  std::vector<std::string> problems = {};  // what the output itself shows to be wrong
};

const std::vector<std::string>& import_formats();
// Imports an output; `format` "" means that the format is detected from the content.
Result<Imported> import_output(const std::string& text, const std::string& format = "");

Result<Imported> import_nccl_tests(const std::string& text);
Result<Imported> import_gpu_burn(const std::string& text);
Result<Imported> import_nvbandwidth(const std::string& text);
Result<Imported> import_fio(const std::string& text);
Result<Imported> import_ibnetdiscover(const std::string& text);

}  // namespace muster
