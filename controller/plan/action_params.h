// ActionParams: the parameters of an action, a JSON object. Orders for many nodes have the same steps and
// name the same nodes: such members are held as text that the actions of a plan share, the others as JSON. A
// value; the shared texts never change.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "controller/plan/shared_text.h"

namespace muster {

class ActionParams {
 public:
  ActionParams() = default;  // {}
  // From a Json only, not from types that convert to it: nested braces would mean something else.
  template <std::same_as<Json> Value>
  ActionParams(Value whole) : own_(std::move(whole)) {}
  ActionParams& operator=(Json whole) { return *this = ActionParams(std::move(whole)); }
  // Takes the texts of its steps, and of the nodes that the steps are about, from the pool.
  static ActionParams with_texts(const Json& whole, TextPool& pool);

  void set_steps(std::vector<SharedText> steps);
  void set(const std::string& key, SharedText value);
  void set_own(const std::string& key, Json value);

  // The complete object; rebuilt by each call.
  Json json() const;
  // Without the other members held as text: the rings.
  Json without_shared() const;
  bool is_object() const { return own_.is_object(); }
  bool contains(const std::string& key) const;
  // A copy of a member: changes to it have no effect here. If it does not exist: null, or `otherwise`.
  const Json operator[](const std::string& key) const { return value(key, Json()); }
  Json value(const std::string& key, Json otherwise) const;

  // The output of dump_json() for it, in pieces.
  void each_piece(const std::function<void(std::string_view)>& take) const;
  // Bytes of what is held as text.
  size_t size_of_texts() const;
  // The members held as JSON, and those held as text.
  const Json& own() const { return own_; }
  const std::vector<SharedText>& steps() const { return steps_; }
  const std::map<std::string, SharedText>& shared() const { return shared_; }

  friend bool operator==(const ActionParams& a, const ActionParams& b) { return a.text() == b.text(); }

 private:
  std::string text() const;

  Json own_ = Json::object();
  bool has_steps_ = false;
  std::vector<SharedText> steps_;  // "steps", one by one
  std::map<std::string, SharedText> shared_;
};

}  // namespace muster
