// Shared by every verb of the `muster` command: global flags, the exit code, and access to the controller.
//
// A verb is one file with one function `add_VERB(Verb&, Context&)` (cli/verbs.h) that declares its flags
// and sets a callback; the callback writes Context::exit. Output for machines (--json) goes to stdout as one
// JSON value, for people to stdout, errors to stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/json_dump.h"
#include "base/result.h"
#include "sys/http/http.h"

namespace muster::cli {

enum Exit {
  kAccepted = 0,
  kFailed = 1,
  kUsage = 2,
  kPartial = 3,
  kRefused = 4,
  kDegraded = 5,
  kOtherKey = 6
};

struct Context {
  std::string socket = "/run/muster/musterd.sock";
  std::string url;         // "https://10.20.0.1:7443" instead of the socket
  std::string token_file;  // operator's bearer token for `url`
  std::string ca_file;     // CA certificate for `url`
  bool json = false;
  bool verbose = false;
  int exit = kAccepted;
};

// A response of the controller that is not 2xx; `body` has the details.
struct ApiError {
  Error error;
  Json body;
};

// Calls to the controller's API. Thread: one call at a time per object; make another for another thread.
class Api {
 public:
  explicit Api(const Context& context) : context_(context) {}
  Result<Json> get(const std::string& path) { return call("GET", path, ""); }
  Result<Json> post(const std::string& path, const Json& body) { return call("POST", path, dump_json(body)); }
  Result<Json> post_text(const std::string& path, std::string body) {
    return call("POST", path, std::move(body));
  }
  Result<Json> put(const std::string& path, std::string body) { return call("PUT", path, std::move(body)); }
  Result<Json> remove(const std::string& path) { return call("DELETE", path, ""); }
  // GET; returns the content unparsed.
  Result<std::string> text(const std::string& path);
  // Calls `on_line` for each line of a streamed response until it returns false or the stream ends.
  Status lines(const std::string& method, const std::string& path, const std::string& body,
               const std::function<bool(const std::string&)>& on_line);
  // Body of the last error response: refusals, spec errors.
  const Json& details() const { return details_; }

 private:
  Result<HttpResponse> send(const std::string& method, const std::string& path, std::string body);
  Result<Json> call(const std::string& method, const std::string& path, std::string body);
  Result<HttpClient*> client();
  HttpRequest request(const std::string& method, const std::string& path, std::string body) const;

  const Context& context_;
  std::unique_ptr<HttpClient> client_;
  std::string token_;
  Json details_;
};

int exit_for(const Error& error);
// Prints an error (as JSON under --json) and sets the exit code.
void complain(Context& context, const Error& error);
void complain(Context& context, const Error& error, const Json& details);
// Prints `value` as JSON under --json, else calls `human`.
void show(const Context& context, const Json& value, const std::function<void()>& human);
// Expands "node[01-03],node07" to names. invalid: a malformed range.
Result<std::vector<std::string>> node_list(const std::string& text);
// For Argument::check of a list that means "all" where it is not given: empty, as from a shell's unset
// variable (`--limit "$NODES"`), it is an error.
std::string wrong_list(const std::string& given);

}  // namespace muster::cli
