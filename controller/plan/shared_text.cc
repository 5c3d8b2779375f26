#include "controller/plan/shared_text.h"

namespace muster {

void SharedText::add(TextPtr whole) {
  const size_t size = whole->size();
  add(std::move(whole), 0, size);
}

void SharedText::add(TextPtr of, size_t begin, size_t end) {
  const auto text = std::string_view(*of).substr(begin, end - begin);
  if (!text.empty()) pieces_.push_back({std::move(of), text});
}

void SharedText::add_literal(std::string_view text) { pieces_.push_back({nullptr, text}); }

void SharedText::add(const SharedText& other) {
  pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
}

size_t SharedText::size() const {
  size_t out = 0;
  for (const auto& piece : pieces_) out += piece.text.size();
  return out;
}

std::string SharedText::text() const {
  std::string out;
  out.reserve(size());
  for (const auto& piece : pieces_) out += piece.text;
  return out;
}

void SharedText::each(const std::function<void(std::string_view)>& take) const {
  for (const auto& piece : pieces_) take(piece.text);
}

void SharedText::each_source(const std::function<void(std::string_view)>& take) const {
  for (const auto& piece : pieces_) take(piece.owner ? std::string_view(*piece.owner) : piece.text);
}

TextPtr TextPool::of(std::string text) {
  const auto known = texts_.find({text.size(), text});
  if (known != texts_.end()) return known->second;
  auto made = std::make_shared<const std::string>(std::move(text));
  texts_.emplace(std::pair<size_t, std::string_view>(made->size(), *made), made);
  return made;
}

}  // namespace muster
