// Rendered steps of playbooks: nodes with the same result share one object. No I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/wire.h"
#include "controller/plan/shared_text.h"
#include "controller/spec/playbook.h"

namespace muster {

// The values of a template's names, for one node at a time.
class NamedValues {
 public:
  virtual ~NamedValues() = default;
  // Null: the name is unknown.
  virtual const Json* find(const std::string& name) = 0;
  // Appends a key to `into` that is equal only for equal values of this name, across all nodes.
  virtual void identify(const std::string& name, std::vector<uintptr_t>& into) = 0;
};

// A step as it is sent to an agent, and its JSON text.
struct RenderedStep {
  // `peers`: "peers" or "rdma_peers" if the step's parameter `peers` is that list without the node itself.
  // The list is not in `step`; its text is inserted between `text` and `rest`.
  explicit RenderedStep(wire::Step what, std::string peers = "");

  wire::Step step;
  std::string peers;
  TextPtr text, rest;
};
using RenderedStepPtr = std::shared_ptr<const RenderedStep>;

// Assigns numbers to values: equal values that were seen recently have the same number; null has 0.
class KnownValues {
 public:
  uintptr_t number_of(const std::string& name, const Json* value);

 private:
  uintptr_t last_ = 0;
  std::map<std::string, std::deque<std::pair<Json, uintptr_t>>> values_;  // newest first
};

// A cache of rendered steps, keyed by the values of all names in a step's templates: nodes with equal values
// share the result. The PlaybookStep objects passed to it must outlive it.
class RenderedSteps {
 public:
  // Rendered with this id for the current context; null if the step's `when` is false.
  Result<RenderedStepPtr> of(const PlaybookStep& step, const std::string& id, NamedValues& context);

  // `source`: a template whose value is text.
  Result<std::string> text(const std::string& source, NamedValues& context);

  KnownValues& values() { return values_; }

 private:
  struct Source {
    Json params;  // without `peers` if RenderedStep::peers holds it
    std::string peers;
    std::vector<std::string> names;  // all names that its rendering depends on
  };
  using Key = std::tuple<const PlaybookStep*, std::vector<uintptr_t>, std::string>;

  const Source& source_of(const PlaybookStep& step);
  Result<RenderedStepPtr> render(const PlaybookStep& step, const std::string& id, NamedValues& context);

  Templates templates_;
  KnownValues values_;
  std::map<const PlaybookStep*, Source> sources_;
  std::map<Key, RenderedStepPtr> known_;
};

}  // namespace muster
