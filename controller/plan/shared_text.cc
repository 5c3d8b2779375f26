#include "controller/plan/shared_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"

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

namespace {

constexpr size_t kAtOnce = 16 << 10;

// True if dump_ascii() would escape no character of the text.
bool is_plain(std::string_view text) {
  unsigned char highest = 0;
  for (const char c : text) highest = std::max(highest, static_cast<unsigned char>(c));
  return highest < 0x7f;
}

// The code point of the first character (UTF-8, as dump_json() writes it), and its length in bytes.
std::pair<uint32_t, size_t> first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length && i < text.size(); ++i)
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
  return {code, length};
}

}  // namespace

TextAround text_around(const Json& others, const std::string& key) {
  TextAround out{"{", ""};
  for (const auto& [name, value] : others.items()) {
    const std::string member = dump_json(Json(name)) + ":" + dump_json(value);
    if (name < key)
      out.before += member + ",";
    else
      out.after += "," + member;
  }
  out.before += dump_json(Json(key)) + ":";
  out.after += "}";
  return out;
}

void JsonDigest::add(std::string_view text) {
  if (!is_plain(text)) return add_escaped(text);
  if (text.size() + waiting_.size() > kAtOnce) {
    sha_.update(waiting_);
    waiting_.clear();
  }
  if (text.size() > kAtOnce)
    sha_.update(text);
  else
    waiting_ += text;
}

void JsonDigest::add_escaped(std::string_view text) {
  while (!text.empty()) {
    const auto [code, length] = first_character(text);
    if (code < 0x7f)
      waiting_ += static_cast<char>(code);
    else if (code < 0x10000)
      waiting_ += fmt::format("\\u{:04x}", code);
    else
      waiting_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    text.remove_prefix(std::min(length, text.size()));
  }
}

std::string JsonDigest::finish() {
  sha_.update(waiting_);
  waiting_.clear();
  return sha_.finish();
}

}  // namespace muster
