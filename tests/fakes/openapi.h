// What an OpenAPI 3.0 description says of one request: its operation, parameters and JSON body. As much of it
// as the descriptions under tests/golden need: $ref, type, required, properties, enum, pattern, lengths,
// items. Every complaint is one line; none: the request is valid. A property or a query that the description
// does not know counts as a mistake, which is stricter than OpenAPI.
#pragma once

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/lower.h"
#include "sys/http/http.h"

namespace muster::testing {

class OpenApi {
 public:
  OpenApi(Json description, std::string base) : all_(std::move(description)), base_(std::move(base)) {}

  std::vector<std::string> complaints(const HttpRequest& request) {
    found_.clear();
    const std::string name = request.method + " " + request.path;
    if (!request.path.starts_with(base_)) return {name + ": not below " + base_};
    const Json* operation = find(request, request.path.substr(base_.size()));
    if (!operation) return {name + ": no such operation"};
    for (const auto& [query, value] : request.query) check_query(*operation, name, query, value);
    for (const Json& one : operation->value("parameters", Json::array())) {
      const Json& parameter = resolve(one);
      const std::string key = parameter.at("name").get<std::string>();
      if (parameter.at("in") != "header" || !parameter.value("required", false)) continue;
      const auto given = request.headers.find(key);
      if (given == request.headers.end())
        found_.push_back(name + ": header " + key + " is missing");
      else
        check(parameter.at("schema"), given->second, name + " header " + key);
    }
    check_body(*operation, request, name);
    return found_;
  }

 private:
  const Json& resolve(const Json& value) const {
    if (!value.is_object() || !value.contains("$ref")) return value;
    return all_.at(Json::json_pointer(value.at("$ref").get<std::string>().substr(1)));
  }

  // "/servers/{server_id}/": each {} is one part, of the form its parameter has.
  const Json* find(const HttpRequest& request, const std::string& path) {
    const std::string method = lower(request.method);
    for (const auto& [pattern, operations] : all_.at("paths").items()) {
      std::smatch parts;
      const std::string form =
          "^" + std::regex_replace(pattern, std::regex("\\{[a-z_]+\\}"), "([^/]+)") + "$";
      if (!std::regex_match(path, parts, std::regex(form)) || !operations.contains(method)) continue;
      size_t part = 1;
      for (const Json& one : operations.at(method).value("parameters", Json::array())) {
        const Json& parameter = resolve(one);
        if (parameter.at("in") == "path" && part < parts.size())
          check(parameter.at("schema"), parts[part++].str(),
                path + " " + parameter.at("name").get<std::string>());
      }
      return &operations.at(method);
    }
    return nullptr;
  }

  void check_query(const Json& operation, const std::string& name, const std::string& key,
                   const std::string& value) {
    for (const Json& one : operation.value("parameters", Json::array())) {
      const Json& parameter = resolve(one);
      if (parameter.at("in") != "query" || parameter.at("name") != key) continue;
      const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      const Json typed = number ? Json(std::stol(value)) : Json(value);
      return check(parameter.at("schema"), typed, name + " query " + key);
    }
    found_.push_back(name + ": no query " + key);
  }

  void check_body(const Json& operation, const HttpRequest& request, const std::string& name) {
    if (!operation.contains("requestBody")) {
      if (!request.body.empty()) found_.push_back(name + ": a body that is not in the description");
      return;
    }
    const auto type = request.headers.find("Content-Type");
    if (type == request.headers.end() || type->second != "application/json")
      found_.push_back(name + ": Content-Type is not application/json");
    const auto body = parse_json(request.body);
    if (!body.ok()) return found_.push_back(name + ": the body is no JSON");
    check(resolve(operation.at("requestBody")).at("content").at("application/json").at("schema"), *body,
          name);
  }

  void check(const Json& reference, const Json& value, const std::string& where) {
    const Json& schema = resolve(reference);
    if (value.is_null() && schema.value("nullable", false)) return;
    const std::string type = schema.value("type", schema.contains("properties") ? "object" : "");
    const bool right = type.empty() || (type == "string" && value.is_string()) ||
                       (type == "boolean" && value.is_boolean()) || (type == "object" && value.is_object()) ||
                       (type == "array" && value.is_array()) ||
                       (type == "integer" && value.is_number_integer());
    if (!right) return found_.push_back(where + ": not a " + type);
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      found_.push_back(where + ": not one of the values allowed");
    if (value.is_string()) check_text(schema, value.get<std::string>(), where);
    if (value.is_array()) {
      if (value.size() > schema.value("maxItems", value.size())) found_.push_back(where + ": too many");
      for (const Json& item : value) check(schema.at("items"), item, where + "[]");
    }
    if (!value.is_object()) return;
    for (const Json& key : schema.value("required", Json::array()))
      if (!value.contains(key.get<std::string>()))
        found_.push_back(where + ": " + key.get<std::string>() + " is missing");
    const Json known = schema.value("properties", Json::object());
    for (const auto& [key, inner] : value.items()) {
      if (!known.contains(key)) found_.push_back(where + ": " + key + " is unknown");
      if (known.contains(key)) check(known.at(key), inner, where + "." + key);
    }
  }

  void check_text(const Json& schema, const std::string& text, const std::string& where) {
    if (text.size() < schema.value("minLength", size_t{0}) ||
        text.size() > schema.value("maxLength", text.size()))
      found_.push_back(where + ": its length");
    if (schema.contains("pattern") &&
        !std::regex_search(text, std::regex(schema.at("pattern").get<std::string>())))
      found_.push_back(where + ": not of its form");
  }

  const Json all_;
  const std::string base_;
  std::vector<std::string> found_;
};

}  // namespace muster::testing
