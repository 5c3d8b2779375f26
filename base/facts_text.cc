#include "base/facts_text.h"

#include <mutex>
#include <utility>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_dump.h"

namespace muster {
namespace {

const std::string kEmpty;

}  // namespace

struct FactsText::Shared {
  std::string text;
  std::once_flag once;
  std::shared_ptr<const HardwareFacts> facts;
  std::string digest;
};

FactsText::FactsText(std::string text) {
  if (text.empty()) return;
  shared_ = std::make_shared<Shared>();
  shared_->text = std::move(text);
}

const std::string& FactsText::text() const { return shared_ ? shared_->text : kEmpty; }

const FactsText::Shared* FactsText::parsed() const {
  if (!shared_) return nullptr;
  std::call_once(shared_->once, [s = shared_.get()] {
    const auto json = parse_json(s->text);
    auto facts = json.ok() ? hardware_facts_from_json(*json) : Result<HardwareFacts>(json.error());
    if (!facts.ok()) return;
    s->digest = sha256(dump_ascii(to_json(*facts)));
    s->facts = std::make_shared<const HardwareFacts>(std::move(facts).value());
  });
  return shared_.get();
}

std::shared_ptr<const HardwareFacts> FactsText::facts() const {
  const Shared* s = parsed();
  return s ? s->facts : nullptr;
}

const std::string& FactsText::digest() const {
  const Shared* s = parsed();
  return s ? s->digest : kEmpty;
}

}  // namespace muster
