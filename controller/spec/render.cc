// render_params of controller/spec/playbook.h: mustache by kainjow, plus two things that it lacks: an unknown
// name is an error, and a string that consists of a single name keeps the type of its value.
#include <kainjow/mustache.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_dump.h"
#include "base/split.h"
#include "controller/spec/playbook.h"

namespace muster {

namespace {

using kainjow::mustache::data;

// Converts a value for mustache. Values that hide a section: false, null, "", and empty lists.
data to_data(const Json& json) {
  if (json.is_object()) {
    data out(data::type::object);
    for (const auto& [key, value] : json.items()) out[key] = to_data(value);
    return out;
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

// Looks up a template's names only when needed: a context has thousands of nodes, and a template mostly
// refers to its own. Collects unknown names.
class StrictContext : public kainjow::mustache::context<std::string> {
 public:
  StrictContext(const std::set<std::string>& names, const FindName& find)
      : context(&kNothing), names_(names), find_(find) {}

  void push(const data* item) override {
    ++depth_;
    context::push(item);
  }
  void pop() override {
    --depth_;
    context::pop();
  }
  const data* get(const std::string& name) const override {
    if (name == "." || depth_ > 0)
      if (const data* inside = context::get(name)) return inside;
    if (const auto known = known_.find(name); known != known_.end()) return &known->second;
    // Only names found when the template was parsed are looked up: its dependencies are complete.
    const Json* found = names_.count(name) > 0 ? find_(name) : nullptr;
    if (found) return &known_.emplace(name, to_data(*found)).first->second;
    unknown.insert(name);
    return nullptr;
  }
  mutable std::set<std::string> unknown;

 private:
  static const data kNothing;

  const std::set<std::string>& names_;
  const FindName& find_;
  int depth_ = 0;  // number of sections that enclose the current position
  mutable std::map<std::string, data> known_;
};
const data StrictContext::kNothing;

// Returns the names between the braces of a template.
std::set<std::string> names_of(const std::string& source) {
  std::set<std::string> out;
  for (size_t at = source.find("{{"); at != std::string::npos; at = source.find("{{", at)) {
    at = source.find_first_not_of("{#^/& ", at);
    if (at == std::string::npos) break;
    const size_t end = std::min(source.find_first_of("} ", at), source.size());
    out.insert(source.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace

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

bool is_true(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (!value.is_string()) return !value.is_null() && !value.empty();
  const std::string text = trim(value.get<std::string>(), " \n\t");
  return !(text.empty() || text == "no" || text == "false" || text == "0");
}

const Json* find_name(const Json& object, const std::string& dotted) {
  const Json* at = &object;
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

struct Templates::Template {
  explicit Template(const std::string& source)
      : whole(whole_name(source)), names(names_of(source)), form(source) {
    form.set_custom_escape([](const std::string& s) { return s; });
  }
  std::string whole;
  std::set<std::string> names;
  kainjow::mustache::mustache form;
};

Templates::Templates() = default;
Templates::~Templates() = default;

Result<Json> Templates::render(const Json& value, const FindName& find) {
  if (value.is_string()) return text(value.get_ref<const std::string&>(), find);
  if (!value.is_structured()) return value;
  if (value.is_array()) return list(value, find);
  Json out = value;
  for (auto& [key, child] : out.items()) {
    auto rendered = render(child, find);
    if (!rendered.ok()) return std::move(rendered).error().with(key);
    child = std::move(rendered).value();
  }
  return out;
}

Result<Json> Templates::list(const Json& items, const FindName& find) {
  Json out = Json::array();
  for (size_t i = 0; i < items.size(); ++i) {
    auto rendered = render(items[i], find);
    if (!rendered.ok()) return std::move(rendered).error().with(fmt::format("[{}]", i));
    if (items[i].is_string() && rendered->is_array())
      for (const Json& one : *rendered) out.push_back(one);
    else
      out.push_back(std::move(rendered).value());
  }
  return out;
}

Result<Json> Templates::text(const std::string& source, const FindName& find) {
  if (source.find("{{") == std::string::npos) return Json(source);
  auto& read = read_[source];
  if (!read) read = std::make_unique<Template>(source);
  if (!read->whole.empty())
    if (const Json* found = find(read->whole)) return *found;
  if (!read->form.is_valid())
    return fail(Code::invalid, fmt::format("'{}': {}", source.substr(0, 80), read->form.error_message()));
  StrictContext strict(read->names, find);
  std::string out = read->form.render(strict);
  if (!strict.unknown.empty())
    return fail(Code::invalid, fmt::format("unknown variable {}", fmt::join(strict.unknown, ", ")));
  return Json(std::move(out));
}

Result<Json> render_params(const Json& value, const Json& context) {
  return Templates().render(value, [&](const std::string& name) { return find_name(context, name); });
}

std::set<std::string> names_in(const Json& value) {
  if (value.is_string()) return names_of(value.get_ref<const std::string&>());
  std::set<std::string> out;
  if (value.is_structured())
    for (const Json& child : value) out.merge(names_in(child));
  return out;
}

}  // namespace muster
