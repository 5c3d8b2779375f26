#include "cli/cli_context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/sudo_user.h"
#include "base/utf8.h"
#include "cli/terminal.h"
#include "controller/spec/spec.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

constexpr DurationMs kCallDeadline = 150 * kSecond;  // power verbs wait for a BMC
constexpr size_t kLongestError = 64 << 10;
constexpr size_t kLongestSudoUser = 256;  // a header has its limit; the controller records less
constexpr DurationMs kStreamDeadline = kDay;

Error no_controller(const Context& context, const Error& cause) {
  const std::string where = context.url.empty() ? context.socket : context.url;
  if (context.url.empty() && ::access(where.c_str(), F_OK) == 0 && ::access(where.c_str(), R_OK | W_OK) != 0)
    return fail(
        Code::denied,
        fmt::format("no permission to use {}: run as root or as a member of the socket's group", where));
  return fail(
      cause.code,
      fmt::format(
          "no controller responds at {} ({})\n  on the controller host: systemctl start musterd\n  without a "
          "controller:   muster lab up SPEC\n  another socket:         --socket PATH or MUSTER_SOCKET",
          where, cause.message));
}

// Returns the error in a response. A request rejected before it reaches a handler gets plain text, not JSON.
Error error_of(const HttpResponse& response, const Json& body) {
  if (body.is_object())
    return fail(code_from_string(body.value("code", "failed")),
                body.value("message", fmt::format("the controller answered {}", response.status)));
  const std::string said = response.body.substr(0, response.body.find('\n')).substr(0, 200);
  return fail(response.status == 400 || response.status == 404 ? Code::invalid : Code::failed,
              fmt::format("the controller answered {}{}{}", response.status, said.empty() ? "" : ": ", said));
}

}  // namespace

Result<HttpClient*> Api::client() {
  if (client_) return client_.get();
  HttpClientOptions options;
  options.max_answer = size_t{4} << 30;  // fits the full JSON plan of a large cluster, which scripts get
  options.base = context_.url.empty() ? "unix:" + context_.socket : context_.url;
  const Files files;
  const auto absolute = [](const std::string& path) { return std::filesystem::absolute(path).string(); };
  if (!context_.url.empty()) {
    if (context_.token_file.empty() || context_.ca_file.empty())
      return fail(Code::invalid,
                  "--url needs --token-file and --ca-file (STATE/operator-token, STATE/pki/ca.crt)");
    TRY(token_, files.read(absolute(context_.token_file)));
    while (!token_.empty() && token_.back() == '\n') token_.pop_back();
    TRY(options.ca_pem, files.read(absolute(context_.ca_file)));
  }
  TRY(client_, make_http_client(std::move(options)));
  return client_.get();
}

HttpRequest Api::request(const std::string& method, const std::string& path, std::string body) const {
  HttpRequest r;
  r.method = method;
  r.target = path;
  if (!body.empty()) r.headers["Content-Type"] = "application/json";
  r.body = std::move(body);
  if (!token_.empty()) r.headers["Authorization"] = "Bearer " + token_;
  if (const char* user = std::getenv("SUDO_USER"); user && *user && context_.url.empty())
    r.headers[kSudoUserHeader] = clean(std::string(first_bytes(user, kLongestSudoUser)));
  return r;
}

Result<HttpResponse> Api::send(const std::string& method, const std::string& path, std::string body) {
  TRY(HttpClient* const http, client());
  auto response = http->request(request(method, path, std::move(body)), kCallDeadline);
  if (!response.ok() && response.error().code == Code::unavailable)
    return no_controller(context_, response.error());
  return response;
}

Result<Json> Api::call(const std::string& method, const std::string& path, std::string body) {
  TRY(const auto response, send(method, path, std::move(body)));
  auto parsed = parse_json(response.body);
  details_ = parsed.ok() ? *parsed : Json();
  if (response.status / 100 != 2) return error_of(response, details_);
  return parsed;
}

Result<std::string> Api::text(const std::string& path) {
  TRY(auto response, send("GET", path, ""));
  if (response.status / 100 == 2) return std::move(response.body);
  return error_of(response, parse_json(response.body).value_or(Json()));
}

Status Api::lines(const std::string& method, const std::string& path, const std::string& body,
                  const std::function<bool(const std::string&)>& on_line) {
  TRY(HttpClient* const http, client());
  // An error's body arrives as lines of the stream, too; the HTTP status is known only at the end.
  std::string rest, beginning;
  const auto response =
      http->stream(request(method, path, body), kStreamDeadline, [&](std::string_view chunk) {
        rest += chunk;
        if (beginning.size() < kLongestError) beginning += chunk;
        for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
          const std::string line = rest.substr(0, end);
          rest.erase(0, end + 1);
          if (!on_line(line)) return false;
        }
        return true;
      });
  client_.reset();  // the connection of an unfinished stream cannot be reused
  if (!response.ok() && response.error().code == Code::unavailable)
    return no_controller(context_, response.error());
  if (!response.ok()) return response.error();
  if (response->status / 100 != 2) return error_of(*response, parse_json(beginning).value_or(Json()));
  return Ok{};
}

int exit_for(const Error& error) {
  switch (error.code) {
    case Code::invalid:
    case Code::not_found:
      return kUsage;
    case Code::denied:
    case Code::conflict:
      return kRefused;
    default:
      return kFailed;
  }
}

void complain(Context& context, const Error& error) { complain(context, error, Json()); }

void complain(Context& context, const Error& error, const Json& details) {
  context.exit = exit_for(error);
  if (context.json) {
    Json out = details.is_object() ? details : Json::object();
    out["code"] = to_string(error.code);
    out["message"] = error.message;
    out["exit"] = context.exit;
    fmt::print("{}\n", dump_json(out, 2));
  } else {
    fmt::print(stderr, "muster: {}\n", clean_lines(error.message));
  }
}

void show(const Context& context, const Json& value, const std::function<void()>& human) {
  if (context.json)
    fmt::print("{}\n", dump_json(value, 2));
  else
    human();
}

Result<std::vector<std::string>> node_list(const std::string& text) {
  std::vector<std::string> names;
  std::string part;
  int depth = 0;
  const auto take = [&]() -> Status {
    if (part.empty()) return Ok{};
    TRY(const auto expanded, expand_range(part));
    names.insert(names.end(), expanded.begin(), expanded.end());
    part.clear();
    return Ok{};
  };
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      TRY_(take());
    else
      part += c;
  }
  TRY_(take());
  return names;
}

std::string wrong_list(const std::string& given) {
  return given.find_first_not_of(", \t") == std::string::npos ? "the list is empty" : "";
}

}  // namespace muster::cli
