#include "base/secrets.h"

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr std::string_view kInstead = "***";
// A shorter line of a value is not replaced: a secret may be a whole file, with lines like "}".
constexpr size_t kShortestSecretLine = 8;
constexpr size_t kShortestEncoded = 8;
// Likewise of what a shortened text has left of a value.
constexpr size_t kShortestRest = 4;

void collect_secrets(const Json& named, const Json& resolved, std::map<std::string, std::string>& out) {
  if (named.is_string() && resolved.is_string()) {
    const auto& text = named.get_ref<const std::string&>();
    if (is_secret_reference(text)) out[text.substr(kSecretPrefix.size())] = resolved.get<std::string>();
  } else if (named.is_object()) {
    for (const auto& [key, value] : named.items())
      if (resolved.contains(key)) collect_secrets(value, resolved.at(key), out);
  } else if (named.is_array() && resolved.is_array()) {
    for (size_t i = 0; i < std::min(named.size(), resolved.size()); ++i)
      collect_secrets(named[i], resolved[i], out);
  }
}

// Of a value alone, and of what any longer text that has it ("user:VALUE") has in common: of a group of three
// bytes that it shares with what stands before or behind it, nothing that depends on that.
std::vector<std::string> base64_of(const std::string& value) {
  std::vector<std::string> out = {to_base64(value)};
  for (size_t skip = 0; skip < std::min<size_t>(3, value.size()); ++skip)
    out.push_back(to_base64(value.substr(skip)).substr(0, (value.size() - skip) * 8 / 6));
  return out;
}

bool has_any(std::string_view text, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) { return has(text, part); });
}

// Which bytes of a text are hidden.
class HiddenBytes {
 public:
  explicit HiddenBytes(const std::string& text) : text_(text), hidden_(text.size(), false) {}

  void hide_all(const std::string& part) {
    for (size_t at = 0; (at = text_.find(part, at)) != text_.npos; ++at) hide(at, part.size());
  }
  // At a cut ("..."), a value may have lost its beginning or its end.
  void hide_cut(const std::string& part) {
    for (size_t cut = 0; (cut = text_.find("...", cut)) != text_.npos; ++cut)
      for (size_t left = part.size() - 1; left >= kShortestRest; --left) {
        if (left <= cut && text_.compare(cut - left, left, part, 0, left) == 0) hide(cut - left, left);
        if (text_.compare(cut + 3, left, part, part.size() - left, left) == 0) hide(cut + 3, left);
      }
  }
  std::string result() const {
    std::string out;
    for (size_t i = 0; i < text_.size(); ++i)
      if (!hidden_[i])
        out += text_[i];
      else if (i == 0 || !hidden_[i - 1])
        out += kInstead;
    return out;
  }

 private:
  void hide(size_t at, size_t size) {
    for (size_t i = at; i < at + size; ++i) hidden_[i] = true;
  }

  const std::string& text_;
  std::vector<bool> hidden_;
};

}  // namespace

bool refers_to_secret(const Json& value) {
  if (value.is_string()) return is_secret_reference(value.get_ref<const std::string&>());
  if (value.is_structured())
    for (const Json& one : value)
      if (refers_to_secret(one)) return true;
  return false;
}

std::map<std::string, std::string> secrets_of(const Json& named, const Json& resolved) {
  std::map<std::string, std::string> out;
  collect_secrets(named, resolved, out);
  return out;
}

SecretMask::SecretMask(const std::vector<std::string>& values) {
  std::set<std::string> parts, wholes;
  const auto add = [](std::set<std::string>& to, const std::string& part, size_t shortest) {
    if (part.size() < shortest) return;
    to.insert(part);
    const std::string quoted = dump_json(Json(part));
    to.insert(quoted.substr(1, quoted.size() - 2));
  };
  for (const std::string& value : values) {
    for (const std::string& whole : {value, trim(value)}) {
      add(wholes, whole, 1);
      for (const std::string& encoded : base64_of(whole)) add(parts, encoded, kShortestEncoded);
    }
    for (const std::string& line : split_lines(value)) add(parts, trim(line), kShortestSecretLine);
  }
  parts.insert(wholes.begin(), wholes.end());
  parts_.assign(parts.begin(), parts.end());
  values_.assign(wholes.begin(), wholes.end());
}

bool SecretMask::finds_in(std::string_view text) const { return has_any(text, parts_); }
bool SecretMask::finds_value_in(std::string_view text) const { return has_any(text, values_); }

std::string SecretMask::text(const std::string& text) const {
  if (parts_.empty()) return text;
  HiddenBytes bytes(text);
  for (const std::string& part : parts_) {
    bytes.hide_all(part);
    bytes.hide_cut(part);
  }
  return bytes.result();
}

Json SecretMask::json(const Json& value) const {
  if (parts_.empty()) return value;
  if (value.is_string()) return Json(text(value.get_ref<const std::string&>()));
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  if (value.is_array())
    for (const Json& one : value) out.push_back(json(one));
  else
    for (const auto& [key, one] : value.items()) out[text(key)] = json(one);
  return out;
}

}  // namespace muster
