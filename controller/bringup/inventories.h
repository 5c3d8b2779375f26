// The known hardware of nodes, read for each node on first use. Thread: as its source.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/facts.h"
#include "base/facts_text.h"

namespace muster {

class Inventories {
 public:
  using Source = std::function<FactsText(const std::string& node)>;
  explicit Inventories(Source source) : source_(std::move(source)) {}
  // Returns the node's hardware; null: never seen, or not readable. Valid as long as this object.
  const HardwareFacts* of(const std::string& node);

 private:
  Source source_;
  std::map<std::string, std::shared_ptr<const HardwareFacts>> taken_;
};

}  // namespace muster
