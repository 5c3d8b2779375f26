// What strangers, nodes, BMCs and programs write, read by what reads it in the product: one function for
// each door, which takes any bytes and ends. It throws std::logic_error when what was read lacks what
// everyone after it relies on. tests/fuzz/run.sh has libFuzzer look for such bytes (libfuzzer.cc); the unit
// tests read the corpora, which need no clang (corpus_test.cc). A target is tests/fuzz/NAME_fuzz.cc with a
// function of that name, its corpus is tests/fuzz/corpus/NAME.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fuzz {

void spec_fuzz(std::string_view bytes);     // specs and playbooks; its corpus: those of the tree
void agents_fuzz(std::string_view bytes);   // what an agent posts: joins, events, results
void redfish_fuzz(std::string_view bytes);  // what a BMC answers to the Redfish driver
void ipmi_fuzz(std::string_view bytes);     // what ipmitool prints, and a serial console
void hosts_fuzz(std::string_view bytes);    // both ends of the wire of `muster accept --hosts`
void tables_fuzz(std::string_view bytes);   // what perftest, nvidia-smi, ss and other tools print

inline void demand(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// The pieces between lines that are only "---".
inline std::vector<std::string> pieces_of(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n---\n";
  std::vector<std::string> out;
  for (size_t at = 0; at != std::string_view::npos;) {
    const size_t end = bytes.find(kBetween, at);
    out.emplace_back(bytes.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? end : end + kBetween.size();
  }
  return out;
}

// Calls `take` with all of the bytes, a few at a time.
template <typename Take>
void in_steps(std::string_view bytes, Take take) {
  for (size_t at = 0, step = 1; at < bytes.size(); at += step, step = step % 97 + 13)
    take(bytes.substr(at, step));
}

}  // namespace muster::fuzz
