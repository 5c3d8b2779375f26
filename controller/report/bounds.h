// What one metric is held to: the limits that the rules of a profile gave, each with the reason and the
// source of its figure. Internal to controller/report. Thread safety: a plain value.
#pragma once

#include <optional>
#include <string>

#include "controller/report/report.h"

namespace muster {

class Bounds {
 public:
  explicit Bounds(std::string unit) : unit_(std::move(unit)) {}
  const std::string& unit() const { return unit_; }
  // Adds to the derivation only.
  void say(const std::string& words);
  // A rule had nothing to hold the value to, because of `lack`. If no other rule has, it is not judged.
  // `of`: what has no figure (Check::no_figure_for).
  void cannot(const std::string& lack, const std::string& words, const std::string& of = "");
  // The same, where other nodes or earlier runs to compare with are missing.
  void cannot_compare(const std::string& lack);
  // `words` name the limit, "0.93 x fleet median 100 of 8 values"; `source` tells where its figure is from.
  // Of several floors the highest holds, of several ceilings the lowest.
  void floor(Verdict verdict, double value, const std::string& words, const std::string& source);
  void ceiling(Verdict verdict, double value, const std::string& words, const std::string& source);
  // Other parts of the model were proven to reach it: one below is faulty, even if all in this run are.
  void proven_floor(double value, const std::string& words, const std::string& source);
  // Sets what the check is held to and why and, if it has a value, the verdict on it.
  void apply(Check& check) const;

 private:
  struct Limit {
    double value = 0;
    std::string words = {}, source = {};
  };
  void hold(Check& check, const std::optional<Limit>& low, const std::optional<Limit>& high) const;

  std::string unit_, words_, lack_, of_;
  bool lacks_figure_ = false;  // some rule lacked more than something to compare with
  std::optional<Limit> fail_below_, degraded_below_, fail_above_, degraded_above_;
  std::optional<double> proven_;
};

// A check that is not mandatory is degraded where it would fail.
void set_failed(Check& check, std::string reason);

}  // namespace muster
