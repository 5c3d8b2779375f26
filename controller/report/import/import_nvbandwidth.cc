// nvbandwidth: for each test a title that ends with the unit, "(GB/s)" or "(ns)", a matrix with a header of
// column numbers, then the sum. A test that ends early has no sum, and the next one follows.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/scan.h"
#include "controller/report/import/import_lines.h"

namespace muster {
namespace {

constexpr const char* kNvbandwidth = "nvbandwidth";

const char* quantity_of(const std::string& test) {
  if (test == "host_to_device_memcpy_ce") return "gpu_h2d_gbps";
  if (test == "device_to_host_memcpy_ce") return "gpu_d2h_gbps";
  if (test == "device_to_device_memcpy_read_ce") return "gpu_p2p_gbps";
  return "";
}

struct Test {
  std::string name = {}, unit = "GB/s";
  size_t line = 0;
  size_t columns = 0;
  std::vector<double> cells = {};
};

// Returns the model in "Device 0: NVIDIA H100 80GB HBM3 (00000000:17:00)", or, with several processes,
// "Process 0 (host): device 0: ..."; nullopt for other lines, including the title "Device to Device Latency
// ... (ns)".
std::optional<std::string> device_of(const std::string& line) {
  constexpr size_t kLongestNumber = 6, kLongestHost = 200;
  Scan scan(line);
  const auto number = [&] { return !scan.take(is_digit, kLongestNumber).empty(); };
  if (scan.skip("Process ")) {
    const auto host = [](char c) { return c != ')'; };
    if (!number() || !scan.skip(" (") || scan.take(host, kLongestHost).empty() || !scan.skip("): "))
      return {};
  }
  if (!scan.skip("Device ") && !scan.skip("device ")) return {};
  if (!number() || !scan.skip(": ")) return {};
  const std::string model(scan.rest());
  return model.substr(0, model.rfind(" ("));
}

// Returns the unit at the end of a title; "" for other lines.
std::string unit_of(const std::string& line) {
  const size_t open = line.rfind('('), close = line.find_last_not_of(" \t");
  if (open == std::string::npos || line[close] != ')') return "";
  const std::string unit = line.substr(open + 1, close - open - 1);
  return unit == "GB/s" || unit == "ns" ? unit : "";
}

// "Waived: ", or in the first versions "Waiving device_to_device_memcpy_write_ce."
bool is_waived(const std::vector<std::string>& words) {
  return words[0] == "Waived:" || words[0] == "Waiving";
}

bool is_error(const std::string& line) {
  for (const char* words :
       {"Invalid value when checking", "ASSERT in expression", "CUDA_ERROR", "NVML_ERROR"})
    if (has(line, words)) return true;
  return false;
}

class Reader {
 public:
  Status take(const std::string& line, size_t number);
  Result<Imported> end();

 private:
  void finish(bool ended);
  Status take_sum(const std::vector<std::string>& words, size_t number);
  Status take_row(const std::vector<std::string>& words, size_t number);

  Imported out_ = {};
  Test test_ = {};
  std::string model_ = {};
  size_t devices_ = 0, waived_ = 0;
};

void Reader::finish(bool ended) {
  const Test test = std::exchange(test_, {});
  if (test.name.empty()) return;
  if (!ended)
    out_.problems.push_back(fmt::format(
        "{} did not end: {} in line {}", test.name,
        test.columns > 0 ? "there is no sum below its matrix" : "it printed no matrix", test.line));
  if (test.cells.empty()) {
    out_.left_out.push_back(
        {test.name, test.columns > 0 ? "no cell of its matrix has a value" : "it printed no matrix"});
    return;
  }
  const auto [low, high] = std::minmax_element(test.cells.begin(), test.cells.end());
  const double worst_cell = test.unit == "ns" ? *high : *low;
  ImportedValue worst{test.name, fmt::format("worst of {}", test.cells.size()), worst_cell, test.unit, "", 1};
  if (const std::string quantity = quantity_of(test.name); !quantity.empty())
    expect_gpu(worst, model_, quantity.c_str());
  out_.values.push_back(std::move(worst));
  if (*low < kFarBelow * *high)
    out_.problems.push_back(
        fmt::format("{}: the lowest is {:.4g}, the highest {:.4g} {}", test.name, *low, *high, test.unit));
}

Status Reader::take_sum(const std::vector<std::string>& words, size_t number) {
  const auto sum = words.size() == 3 ? number_of(words[2]) : std::nullopt;
  if (!sum) return malformed(kNvbandwidth, number, "the sum is not a number");
  if (test_.columns == 0) return malformed(kNvbandwidth, number, "there is no matrix above this sum");
  double cells = 0;
  for (const double value : test_.cells) cells += value;
  constexpr double kRounding = 0.01;
  if (std::abs(cells - *sum) > kRounding * std::max(cells, *sum))
    return malformed(kNvbandwidth, number,
                     fmt::format("the sum is {:.6g}, but the cells above it add up to {:.6g}", *sum, cells));
  finish(true);
  return Ok{};
}

Status Reader::take_row(const std::vector<std::string>& words, size_t number) {
  if (test_.columns == 0) {
    test_.columns = words.size();
    return Ok{};
  }
  if (words.size() != test_.columns + 1)
    return malformed(kNvbandwidth, number,
                     fmt::format("the row has {} values instead of {}", words.size() - 1, test_.columns));
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "N/A") continue;
    const auto value = number_of(words[i]);
    if (!value) return malformed(kNvbandwidth, number, "'" + words[i] + "' is not a bandwidth");
    test_.cells.push_back(*value);
  }
  return Ok{};
}

Status Reader::take(const std::string& line, size_t number) {
  const auto words = words_of(line);
  if (words.empty()) return Ok{};
  if (const auto device = device_of(line)) {
    ++devices_;
    if (!device->empty()) model_ = *device;
  } else if (words[0] == "Running" && words.size() == 2) {
    finish(false);
    test_.name = words[1].substr(0, words[1].find_last_not_of('.') + 1);
    test_.line = number;
  } else if (is_waived(words)) {
    ++waived_;
    if (test_.columns == 0) test_ = {};
  } else if (is_error(line)) {
    out_.problems.push_back(fmt::format("line {}: {}", number, trim(line)));
  } else if (const std::string unit = unit_of(line); !unit.empty()) {
    test_.unit = unit;
  } else if (words[0] == "SUM") {
    return take_sum(words, number);
  } else if (!test_.name.empty() && digits(words[0])) {
    return take_row(words, number);
  }
  return Ok{};
}

Result<Imported> Reader::end() {
  finish(false);
  if (out_.values.empty() && out_.left_out.empty() && waived_ == 0)
    return fail(Code::invalid, "the nvbandwidth output contains no matrix");
  if (waived_ > 0)
    out_.left_out.push_back({fmt::format("{} test{}", waived_, waived_ == 1 ? "" : "s"),
                             "waived: nvbandwidth did not run them here"});
  out_.format = kNvbandwidth;
  out_.title = fmt::format("{} device{}, {}", devices_, devices_ == 1 ? "" : "s", model_);
  return std::move(out_);
}

}  // namespace

Result<Imported> import_nvbandwidth(const Run& run) {
  Reader reader;
  size_t number = run.line;
  for (const auto& line : lines_of(run.text)) TRY_(reader.take(line, number++));
  return reader.end();
}

}  // namespace muster
