// The steps of playbooks as they are rendered for nodes: one for all nodes to which it says the same. Pure.
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

// What a template's names stand for, for one node at a time.
class NamedValues {
 public:
  virtual ~NamedValues() = default;
  // null: the name is unknown.
  virtual const Json* find(const std::string& name) = 0;
  // Adds what tells the value of a name from other values that it has or had, for this node or another one.
  virtual void identify(const std::string& name, std::vector<uintptr_t>& into) = 0;
};

// A step as it is sent, and its text.
struct RenderedStep {
  // `peers`: "peers" or "rdma_peers" where that list, without the node itself, is what the step's parameter
  // `peers` says. It is not in `step`: as text it stands between `text` and `rest`.
  explicit RenderedStep(wire::Step what, std::string peers = "");

  wire::Step step;
  std::string peers;
  TextPtr text, rest;
};
using RenderedStepPtr = std::shared_ptr<const RenderedStep>;

// Tells values apart: equal ones that were seen lately have the same number, null has 0.
class KnownValues {
 public:
  uintptr_t number_of(const std::string& name, const Json* value);

 private:
  uintptr_t last_ = 0;
  std::map<std::string, std::deque<std::pair<Json, uintptr_t>>> values_;  // newest first
};

// What was rendered so far, by the values of all names that a step's templates have: nodes that agree in them
// share what is rendered. `playbooks` passed to it must outlive it.
class RenderedSteps {
 public:
  // With this id for what the context sees now; null: its `when` says no.
  Result<RenderedStepPtr> of(const PlaybookStep& step, const std::string& id, NamedValues& context);

  // A template whose value is text, for what the context sees now.
  Result<std::string> text(const std::string& source, NamedValues& context);

  KnownValues& values() { return values_; }

 private:
  struct Source {
    Json params;  // without `peers`, where that is a list as in RenderedStep
    std::string peers;
    std::vector<std::string> names;  // all that its rendering depends on
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
