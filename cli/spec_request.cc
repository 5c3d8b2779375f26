#include "cli/spec_request.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "base/json_at.h"
#include "base/name_ranges.h"
#include "base/plural.h"
#include "cli/shown_preview.h"
#include "cli/spec_file.h"
#include "cli/terminal.h"
#include "sys/clock.h"

namespace muster::cli {
namespace {

// The nodes that `up` goes on without, in the order of the plans.
std::vector<std::string> nodes_left_out(const Json& preview) {
  std::vector<std::string> out;
  for (const Json& plan : list_at(preview, "plans")) {
    const auto left_out = name_list(list_at(plan, "left_out"));
    out.insert(out.end(), left_out.begin(), left_out.end());
  }
  return out;
}

}  // namespace

void complain_of_spec(Context& context, const Api& api, const Error& error) {
  if (!context.json && api.details().is_object()) {
    for (const Json& e : list_at(api.details(), "errors")) fmt::print(stderr, "{}\n", clean_at(e, "text"));
    fmt::print(stderr, "{}", render_refusals(api.details()));
  }
  complain(context, error, api.details());
}

std::optional<std::string> spec_to_send(Context& context, const std::string& path) {
  auto file = read_spec_file(path);
  if (!file.ok()) return complain(context, file.error()), std::nullopt;
  if (file->errors.empty() && file->text.empty())
    return complain(context, fail(Code::invalid, path + " is empty")), std::nullopt;
  if (file->errors.empty()) return std::move(file->text);
  for (const auto& e : file->errors) fmt::print(stderr, "{}\n", to_string(e, path));
  complain(context, fail(Code::invalid,
                         counted(file->errors.size(), "error") + " in the playbooks that the spec names"));
  return std::nullopt;
}

std::optional<Json> request_preview(Context& context, const PreviewRequest& request) {
  Json body = {{"nodes", request.nodes},
               {"force", request.force},
               {"reimage", request.reimage},
               {"through_ram", request.through_ram}};
  if (request.live) body["live"] = true;
  if (!request.spec.empty()) body["spec"] = request.spec;
  if (!request.file.empty()) body["file"] = request.file;
  Api api(context);
  auto preview = api.post("/v1/spec/preview", body);
  if (preview.ok()) return std::move(preview).value();
  complain_of_spec(context, api, preview.error());
  return std::nullopt;
}

std::string why_up_would_stop(const Json& preview) {
  for (const Json& image : list_at(preview, "images"))
    if (!text_at(image, "error").empty())
      return fmt::format("image {} cannot be built: {}", clean_at(image, "name"), clean_at(image, "error"));
  for (const Json& plan : list_at(preview, "plans")) {
    if (!text_at(plan, "error").empty()) return "some nodes cannot be planned: " + text_at(plan, "error");
    const Json& refusals = list_at(plan, "refusals");
    if (refusals.empty()) continue;
    return fmt::format("{} is refused: {} [{}]{}", clean_at(refusals[0], "node"),
                       clean_at(refusals[0], "message"), clean_at(refusals[0], "rule"),
                       refusals.size() > 1 ? fmt::format(", and {} more", refusals.size() - 1) : "");
  }
  return "";
}

void show_preview(Context& context, const Json& preview) {
  context.exit = why_up_would_stop(preview).empty() ? kAccepted : kRefused;
  show(context, preview, [&] { fmt::print("{}", render_spec_preview(preview, wall_clock(), text_width())); });
}

bool needs_preparation(const Json& preview) {
  return !is_true_at(preview, "unchanged") || !list_at(preview, "images").empty();
}

std::string question_about(const Json& preview) {
  const auto without = nodes_left_out(preview);
  return fmt::format("{} and go on{}?",
                     is_true_at(preview, "unchanged")
                         ? "Build these images"
                         : fmt::format("Store this as revision {}", integer_at(preview, "coming")),
                     without.empty() ? "" : " without " + names_in_ranges(without));
}

std::optional<int64_t> store_spec(Context& context, const PreviewRequest& request, const Json& preview,
                                  const std::string& note) {
  Api api(context);
  const std::string query =
      fmt::format("?file={}&after={}{}", url_encode(request.file), integer_at(preview, "revision"),
                  note.empty() ? "" : "&note=" + url_encode(note));
  const auto stored = api.put("/v1/spec" + query, request.spec);
  if (!stored.ok()) return complain_of_spec(context, api, stored.error()), std::nullopt;
  if (!context.json && !stored->value("unchanged", false))
    fmt::print("spec revision {}: cluster {}, {} nodes\n", stored->value("revision", 0),
               stored->value("cluster", ""), stored->value("nodes", 0));
  return integer_at(*stored, "revision");
}

}  // namespace muster::cli
