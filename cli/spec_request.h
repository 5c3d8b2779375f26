// Steps shared by the verbs that take a spec: reading the file, what it would change, and storing it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/carry_out.h"
#include "cli/cli_context.h"

namespace muster::cli {

// The file's text as the controller gets it, never empty: without a text a request means the stored spec.
// Nothing: it cannot be sent; the errors were printed.
std::optional<std::string> spec_to_send(Context& context, const std::string& path);
// Prints why the controller refused a request with a spec: the errors one by one, then their number.
void complain_of_spec(Context& context, const Api& api, const Error& error);

struct PreviewRequest {
  std::string spec = {};  // text; empty: the stored one
  std::string file = {};  // its name in messages
  std::vector<std::string> nodes = {}, force = {};
  bool reimage = false, through_ram = false;
  bool live = false;  // agents check the steps
};
// POST /v1/spec/preview. Nothing: it was refused; the reason was printed.
std::optional<Json> request_preview(Context& context, const PreviewRequest& request);
// What `muster up` would stop for, at its first plan or after it: a refusal, a plan that cannot be made, an
// image that cannot be built. "": nothing; nodes that a plan only leaves out stop nothing.
std::string why_up_would_stop(const Json& preview);
// Prints it, and sets the exit code: 4 if `up` would stop.
void show_preview(Context& context, const Json& preview);
// True if `up` has something to do before it plans: the text is not stored, or images are not built.
bool needs_preparation(const Json& preview);
// The prompt of `up`; it names the nodes that `up` goes on without.
std::string question_about(const Json& preview);

// Stores the request's text as a new revision, and says so: its number. Nothing: it was refused, for instance
// because another revision was stored since the preview; the reason was printed.
std::optional<int64_t> store_spec(Context& context, const PreviewRequest& request, const Json& preview,
                                  const std::string& note = "");

}  // namespace muster::cli
