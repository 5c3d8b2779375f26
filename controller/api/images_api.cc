// Images: lists, builds, imports and exports them; progress is streamed as one JSON object per line, and the
// first object of a build (fraction 0) gives the reason for the build.
#include "base/json_dump.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/current/current_spec.h"
#include "controller/image/service/image_service.h"
#include "controller/spec/lab_only.h"

namespace muster::api {
namespace {

// The answer of a long image job: lines {"what", "fraction"}, then {"digest"} or {"error"}.
struct JobLines {
  explicit JobLines(const CallPtr& c) : call(c) {
    HttpResponse head;
    head.headers["Content-Type"] = "application/x-ndjson";
    call->responder->start_stream(std::move(head));
  }
  void line(const Json& json) const { call->responder->write(dump_json(json) + "\n"); }
  ImageService::Progress progress() const {
    return [lines = *this](const std::string& what, double fraction) {
      lines.line({{"what", what}, {"fraction", fraction}});
    };
  }
  // `did`: `what` of the last line, such as "built"; `about`: fields for the event.
  ImageService::Built finish(const std::string& did, const Json& about) const {
    return [lines = *this, did, about](Result<ImageService::Image> image) {
      if (image.ok()) {
        Json event = about;
        event["digest"] = image->digest;
        if (!image->reused) lines.call->record("", "image", std::move(event));
        lines.line({{"what", did}, {"fraction", 1}, {"digest", image->digest}, {"reused", image->reused}});
      } else {
        Json event = about;
        event["error"] = image.error().message;
        lines.call->record("", "image", std::move(event));
        lines.line({{"error", error_json(image.error())}});
      }
      lines.call->responder->end_stream();
    };
  }

  CallPtr call;
};

// Paths are on the controller host, so only local clients may give them.
Result<Json> local_request(const CallPtr& call) {
  if (call->listener != Listener::local)
    return fail(
        Code::denied,
        "images can be imported and exported only on the controller host, through the controller's socket");
  return parse_json(call->request.body);
}

Status absolute(const std::string& path) {
  if (!path.empty() && path.front() == '/') return Ok{};
  return fail(Code::invalid, "the path must be absolute");
}

}  // namespace

void list_images(const CallPtr& call) {
  const auto spec = call->services.spec.get();
  call->ok({{"images", call->services.images.list(spec.ok() ? &(*spec)->spec : nullptr)}});
}

void build_image(const CallPtr& call) {
  const auto body = parse_json(call->request.body);
  if (!body.ok()) return call->error(body.error());
  JsonReader r(*body, "request");
  ImageService::Order order;
  r.get("name", order.name);
  r.get_or("rebuild", order.rebuild, false);
  r.get_or("bake", order.bake, {});
  r.get_or("recipe", order.recipe, {});
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  // The names become names of a folder and of a file.
  for (const auto& name : {order.name, order.recipe})
    if ((!name.empty() && name.front() == '.') || name.find('/') != std::string::npos)
      return call->error(fail(Code::invalid, "not a valid image or recipe name: '" + name + "'"));
  if (order.name.empty()) return call->error(fail(Code::invalid, "an image name is required"));
  const auto spec = call->services.spec.get();
  // `muster up` builds before it plans: for a spec that cannot be planned, building would waste minutes.
  if (spec.ok() && (*spec)->spec.images.count(order.name) && !call->services.options.lab)
    if (const auto fine = refuse_lab_only((*spec)->spec, (*spec)->revision, (*spec)->spec.acceptance_profile);
        !fine.ok())
      return call->error(fine.error());
  const auto playbooks = call->services.bringup.playbooks(spec.ok() ? &(*spec)->spec : nullptr);
  if (!playbooks.ok()) return call->error(playbooks.error());
  const JobLines lines(call);
  call->services.images.build(spec.ok() ? &(*spec)->spec : nullptr, (*playbooks)->all, order,
                              lines.progress(), lines.finish("built", {{"name", order.name}}));
}

void import_image(const CallPtr& call) {
  const auto body = local_request(call);
  if (!body.ok()) return call->error(body.error());
  JsonReader r(*body, "request");
  std::string path;
  r.get("path", path);
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  if (const auto usable = absolute(path); !usable.ok()) return call->error(usable.error());
  const JobLines lines(call);
  call->services.images.bring_in(path, lines.progress(), lines.finish("imported", {{"imported", path}}));
}

void export_image(const CallPtr& call) {
  const auto body = local_request(call);
  if (!body.ok()) return call->error(body.error());
  JsonReader r(*body, "request");
  std::string name, path;
  r.get("name", name);
  r.get("path", path);
  if (const auto read = r.finish(); !read.ok()) return call->error(read.error());
  if (const auto usable = absolute(path); !usable.ok()) return call->error(usable.error());
  const JobLines lines(call);
  call->services.images.write_out(name, path, lines.progress(),
                                  lines.finish("exported", {{"name", name}, {"exported", path}}));
}

}  // namespace muster::api
