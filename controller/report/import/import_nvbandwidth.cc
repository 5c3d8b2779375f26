// nvbandwidth: for each test a title that ends with the unit, "(GB/s)" or "(ns)", a matrix with a header of
// column numbers, then the sum.
#include <algorithm>
#include <optional>

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
  size_t columns = 0;
  std::vector<double> cells = {};
};

void finish(const Test& test, const std::string& model, Imported& out) {
  if (test.cells.empty()) return;
  const auto [low, high] = std::minmax_element(test.cells.begin(), test.cells.end());
  const double worst_cell = test.unit == "ns" ? *high : *low;
  ImportedValue worst{test.name, fmt::format("worst of {}", test.cells.size()), worst_cell, test.unit, "", 1};
  if (const std::string quantity = quantity_of(test.name); !quantity.empty())
    expect_gpu(worst, model, quantity.c_str());
  out.values.push_back(std::move(worst));
  if (*low < 0.8 * *high)
    out.problems.push_back(
        fmt::format("{}: the lowest is {:.4g}, the highest {:.4g} {}", test.name, *low, *high, test.unit));
}

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

}  // namespace

Result<Imported> import_nvbandwidth(const std::string& text) {
  Imported out;
  out.format = kNvbandwidth;
  Test test;
  std::string model;
  size_t number = 0, devices = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (const auto device = device_of(line)) {
      ++devices;
      if (!device->empty()) model = *device;
    } else if (words[0] == "Running" && words.size() == 2) {
      test = {};
      test.name = words[1].substr(0, words[1].find_last_not_of('.') + 1);
    } else if (const std::string unit = unit_of(line); !unit.empty()) {
      test.unit = unit;
    } else if (words[0] == "SUM") {
      if (words.size() != 3 || !number_of(words[2]))
        return malformed(kNvbandwidth, number, "the sum is not a number");
      if (test.cells.empty()) return malformed(kNvbandwidth, number, "there is no matrix above this sum");
      finish(test, model, out);
      test = {};
    } else if (!test.name.empty() && digits(words[0])) {
      const bool header = test.columns == 0;
      if (header) {
        test.columns = words.size();
        continue;
      }
      if (words.size() != test.columns + 1)
        return malformed(kNvbandwidth, number,
                         fmt::format("the row has {} values instead of {}", words.size() - 1, test.columns));
      for (size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "N/A") continue;
        const auto value = number_of(words[i]);
        if (!value) return malformed(kNvbandwidth, number, "'" + words[i] + "' is not a bandwidth");
        test.cells.push_back(*value);
      }
    }
  }
  if (out.values.empty()) return fail(Code::invalid, "the nvbandwidth output contains no complete matrix");
  if (!test.cells.empty())
    return malformed(kNvbandwidth, number, "the output ends within the matrix of " + test.name);
  out.title = fmt::format("{} device{}, {}", devices, devices == 1 ? "" : "s", model);
  return out;
}

}  // namespace muster
