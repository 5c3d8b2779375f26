// render_params of controller/spec/playbook.h: mustache by kainjow, with two things it lacks: an unknown name
// is an error, and a string that is nothing but one name keeps the type of its value.
#include <kainjow/mustache.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/json_dump.h"
#include "controller/spec/playbook.h"

namespace muster {

namespace {

using kainjow::mustache::data;

// Falsy for sections: false, null, "", and empty lists.
data to_data(const Json& json) {
  if (json.is_object()) {
    kainjow::mustache::object out;
    for (const auto& [key, value] : json.items()) out.emplace(key, to_data(value));
    return data(out);
  }
  if (json.is_array()) {
    data out(data::type::list);
    for (const Json& item : json) out << to_data(item);
    return out;
  }
  if (json.is_string())
    return json.get_ref<const std::string&>().empty() ? data(false) : data(json.get<std::string>());
  if (json.is_null() || json == false) return data(false);
  return data(dump_json(json));  // true, numbers
}

// Remembers the names nobody knows.
class StrictContext : public kainjow::mustache::context<std::string> {
 public:
  explicit StrictContext(const data* root) : context(root) {}
  const data* get(const std::string& name) const override {
    const data* found = context::get(name);
    if (!found) unknown.insert(name);
    return found;
  }
  mutable std::set<std::string> unknown;
};

// "{{name}}" or "{{{name}}}" and nothing else -> name.
std::string whole_name(const std::string& text) {
  size_t braces = 0;
  while (braces < 3 && braces < text.size() && text[braces] == '{') ++braces;
  if (braces < 2 || text.size() <= 2 * braces ||
      text.compare(text.size() - braces, braces, std::string(braces, '}')) != 0)
    return "";
  std::string inside = text.substr(braces, text.size() - 2 * braces);
  while (!inside.empty() && inside.front() == ' ') inside.erase(0, 1);
  while (!inside.empty() && inside.back() == ' ') inside.pop_back();
  const bool name =
      inside.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
      std::string::npos;
  return name ? inside : "";
}

const Json* lookup(const Json& context, const std::string& dotted) {
  const Json* at = &context;
  for (size_t start = 0; start <= dotted.size();) {
    const size_t dot = std::min(dotted.find('.', start), dotted.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(dotted.substr(start, dot - start));
    if (found == at->end()) return nullptr;
    at = &*found;
    start = dot + 1;
  }
  return at;
}

// The first parts of all names in a template: what of a context it can reach from the outside. A context has
// thousands of nodes, a template mostly names its own.
std::set<std::string> roots_of(const std::string& source) {
  std::set<std::string> out;
  for (size_t at = source.find("{{"); at != std::string::npos; at = source.find("{{", at)) {
    at = source.find_first_not_of("{#^/& ", at);
    if (at == std::string::npos) break;
    const size_t end = std::min(source.find_first_of(".} ", at), source.size());
    out.insert(source.substr(at, end - at));
    at = end;
  }
  return out;
}

class Renderer {
 public:
  explicit Renderer(const Json& context) : context_(context) {}

  Result<Json> value(const Json& json) {
    if (json.is_string()) return text(json.get<std::string>());
    if (!json.is_structured()) return json;
    if (json.is_array()) return list(json);
    Json out = json;
    for (auto& [key, child] : out.items()) {
      auto rendered = value(child);
      if (!rendered.ok()) return std::move(rendered).error().with(key);
      child = std::move(rendered).value();
    }
    return out;
  }

 private:
  Result<Json> list(const Json& json) {
    Json out = Json::array();
    for (size_t i = 0; i < json.size(); ++i) {
      auto rendered = value(json[i]);
      if (!rendered.ok()) return std::move(rendered).error().with(fmt::format("[{}]", i));
      if (json[i].is_string() && rendered->is_array())
        out.insert(out.end(), rendered->begin(), rendered->end());
      else
        out.push_back(std::move(rendered).value());
    }
    return out;
  }

  Result<Json> text(const std::string& source) {
    if (source.find("{{") == std::string::npos) return Json(source);
    if (const std::string name = whole_name(source); !name.empty())
      if (const Json* found = lookup(context_, name)) return *found;
    kainjow::mustache::mustache form(source);
    if (!form.is_valid())
      return fail(Code::invalid, fmt::format("'{}': {}", source.substr(0, 80), form.error_message()));
    form.set_custom_escape([](const std::string& s) { return s; });
    kainjow::mustache::object named;
    for (const auto& root : roots_of(source))
      if (const auto found = context_.find(root); found != context_.end())
        named.emplace(root, to_data(*found));
    const data reachable(named);
    StrictContext strict(&reachable);
    std::string out = form.render(strict);
    if (!strict.unknown.empty())
      return fail(Code::invalid, fmt::format("unknown variable {}", fmt::join(strict.unknown, ", ")));
    return Json(std::move(out));
  }

  const Json& context_;
};

}  // namespace

Result<Json> render_params(const Json& value, const Json& context) { return Renderer(context).value(value); }

}  // namespace muster
