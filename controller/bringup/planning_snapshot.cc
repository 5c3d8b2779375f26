#include "controller/bringup/planning_snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/json_dump.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr size_t kLongest = 80;  // longer values are replaced by their digest
constexpr size_t kInOneLine = 4;

std::string yes(bool is) { return is ? "yes" : "no"; }

// Joins a list, with the length before each element so that different lists never give the same text.
std::string short_of(const std::string& text) { return text.size() <= kLongest ? text : sha256(text); }
template <typename List>
std::string measured_list(const List& list) {
  std::string out;
  for (const std::string& one : list) out += fmt::format("{}:{} ", one.size(), one);
  return short_of(out);
}

std::string digest_of(const HardwareFacts& facts) { return sha256(dump_ascii(to_json(facts))); }

InputFields fields_of(const PlannerImage& image) {
  const auto& [digest, manifest_path, trial, boot_size, slurm, gpu_driver] = image;
  (void)boot_size, (void)slurm, (void)gpu_driver;  // of the same digest
  return {{"digest", digest}, {"manifest", manifest_path}, {"trial", yes(trial)}};
}

std::string terms_of(const std::optional<BatchTerms>& batch) {
  if (!batch) return "";
  const auto& [prefetch, drain_timeout, trial, failure_budget] = *batch;
  return fmt::format("{} {} {} {}", drain_timeout, trial, failure_budget, measured_list(prefetch));
}

InputFields fields_of(const PlanRequest& request) {
  const auto& [kind, nodes, force, profile, through_ram, reimage, batch, skip] = request;
  return {{"kind", std::to_string(static_cast<int>(kind))},
          {"nodes", measured_list(nodes)},
          {"force", measured_list(force)},
          {"profile", profile},
          {"through_ram", yes(through_ram)},
          {"reimage", yes(reimage)},
          {"batch", terms_of(batch)},
          {"skip", measured_list(skip)}};
}

InputFields fields_of(const OwnMachine& own) {
  const auto& [uuid, macs, addresses, names] = own;
  return {{"uuid", uuid},
          {"macs", measured_list(macs)},
          {"addresses", measured_list(addresses)},
          {"names", measured_list(names)}};
}

InputFields fields_of(const wire::SlotProgram& program) {
  const auto& [path, digest, size, mode] = program;
  return {{"path", path}, {"digest", digest}, {"size", std::to_string(size)}, {"mode", std::to_string(mode)}};
}

InputFields fields_of(const GpuResults& results) {
  const auto& [digest, models] = results;
  std::string speeds;
  for (const auto& [model, of_model] : models)
    for (const auto& [check, proven] : of_model) {
      const auto& [value, gpus] = proven;
      speeds += fmt::format("{}:{} {}:{} {} {}\n", model.size(), model, check.size(), check, value, gpus);
    }
  return {{"digest", digest}, {"models", short_of(speeds)}};
}

// The node's fields as the planner gets them: without facts that are no longer valid.
InputFields fields_of(const NodeObservation& seen, const LookedAt* at) {
  const auto& [facts, machine, mode, online, state, image_digest, config_digest, slurm, gpu_driver,
               product_uuid, doubtful, held_by, reason, on_trial, slot, accept_took] = seen;
  std::string now, ever;
  if (at) {
    const auto& [text, written] = *at;
    ever = text.digest();
    if (!ever.empty() && !written.count(""))
      now = written.empty() ? ever : ever + " " + measured_list(written);
  } else {
    now = facts ? digest_of(*facts) : "";
    ever = machine ? digest_of(*machine) : "";
  }
  return {{"facts", now},
          {"machine", ever},
          {"mode", mode ? std::string(wire::to_string(*mode)) : ""},
          {"online", yes(online)},
          {"state", std::string(to_string(state))},
          {"image", image_digest},
          {"config", config_digest},
          {"uuid", product_uuid},
          {"doubtful", yes(doubtful)},
          {"held_by", std::string(to_string(held_by))},
          {"reason", short_of(reason)},
          {"trial", yes(on_trial)},
          {"slot", slot},
          {"proving", std::to_string(accept_took)}};
}

void add_nodes(const PlanningSnapshot& snapshot, PlannedInputs& out) {
  const auto part = [&](const std::string& name) -> InputFields& { return out["node " + name]; };
  for (const auto& [name, seen] : snapshot.in.nodes) {
    const auto at = snapshot.looked_at.find(name);
    part(name) = fields_of(seen, at == snapshot.looked_at.end() ? nullptr : &at->second);
  }
  for (const auto& [name, at] : snapshot.looked_at)
    if (!snapshot.in.nodes.count(name)) part(name) = fields_of({}, &at);
}

struct Said {
  std::string_view field;
  const char* words;  // {0}: what it is now, {1}: what it was
};
constexpr std::string_view kHeldBy = "held_by";
constexpr Said kOfNode[] = {{"facts", "its inventory is different"},
                            {"machine", "its inventory is different"},
                            {"mode", "its agent now runs in system '{0}', not '{1}'"},
                            {"state", "its state is now {0}, not {1}"},
                            {"image", "it runs a different image"},
                            {"config", "it is configured differently"},
                            {"uuid", "the name is bound to a different machine"},
                            {kHeldBy, "it is now quarantined by '{0}', not by '{1}'"},
                            {"reason", "it is quarantined for a different reason"},
                            {"slot", "it now runs from slot '{0}', not '{1}'"},
                            {"proving", "the measured duration of its last acceptance changed"}};

std::string of_node(std::string_view field, const std::string& before, const std::string& now) {
  const bool is = now == "yes";
  if (field == "online") return is ? "its agent is now reachable" : "its agent is now silent";
  if (field == "doubtful")
    return is ? "its data is from an older copy of the database" : "its agent reported for the first time";
  if (field == "trial") return is ? "it is now in a trial boot" : "it is no longer in a trial boot";
  if (field == "mode" && now.empty()) return "it is no longer known which system its agent runs in";
  if (field == "facts" && now.empty()) return "the content of its disks is no longer known";
  if (field == "facts" && before.empty()) return "the content of its disks is now known";
  for (const auto& [name, words] : kOfNode)
    if (name == field) return fmt::format(fmt::runtime(words), now, before);
  return fmt::format("'{}' has changed", field);
}

std::string kind_of(const std::string& part) { return part.substr(0, part.find(' ')); }

std::string in_words(const std::string& part, std::string_view field, const std::string& before,
                     const std::string& now) {
  const std::string kind = kind_of(part);
  if (kind == "node") return of_node(field, before, now);
  if (part == "spec")
    return field == "revision" ? fmt::format("revision {} is now stored", now) : "its text has changed";
  if (part == "newest run") return "a new run has begun";
  if (part == "lab")
    return now == "yes" ? "this is now a lab's controller" : "this is no longer a lab's controller";
  if (kind == "image")
    return field == "trial" ? "its support for automatic rollback changed" : "it is a different build";
  if (kind == "program") return "it is a different build";
  if (kind == "playbook") return "its text has changed";
  if (part == "own machine") return fmt::format("the controller's own {} changed", field);
  return now.size() < kLongest && !now.empty() ? fmt::format("now '{}'", now) : "it has changed";
}

std::string value_of(const InputFields& fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? "" : found->second;
}

void compare(const std::string& part, const InputFields& before, const InputFields& now,
             std::vector<std::string>& out) {
  const auto differs = [&](std::string_view field) {
    return value_of(before, field) != value_of(now, field);
  };
  const auto say = [&](std::string_view field, const std::string& was, const std::string& is) {
    if (was == is) return;
    // These two matter only while a node is quarantined, and a changed revision implies a changed text: do
    // not report both changes.
    if (differs("state") && (field == "held_by" || field == "reason")) return;
    if (differs("revision") && field == "text") return;
    if (differs("online") && field == "trial") return;  // a silent node's trial state is unknown
    std::string line = part + ": " + in_words(part, field, was, is);
    if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
  };
  for (const auto& [field, value] : now) say(field, value_of(before, field), value);
  for (const auto& [field, value] : before)
    if (value_of(now, field).empty()) say(field, value, "");
}

}  // namespace

PlannedInputs inputs_of(const PlanningSnapshot& snapshot) {
  const auto& [revision, books, looked_at, in] = snapshot;
  // The content of specs and playbooks is compared by the digests of their texts.
  const auto& [spec, number, playbooks, images, nodes, request, public_values, authority, follows, address,
               metrics, own, programs, kernel_options, lab, gpu_results] = in;
  PlannedInputs out;
  out["spec"] = {{"revision", std::to_string(revision->revision)}, {"text", revision->digest}};
  for (const auto& [name, digest] : books->digests) out["playbook " + name] = {{"text", digest}};
  for (const auto& [name, image] : images) out["image " + name] = fields_of(image);
  add_nodes(snapshot, out);
  out["request"] = fields_of(request);
  for (const auto& [name, value] : public_values) out["value " + name] = {{"is", short_of(value)}};
  out["authority"] = {{"is", authority}};
  out["newest run"] = {{"is", follows}};
  out["controller's address"] = {{"is", address}};
  out["address of the controller's metrics"] = {{"is", metrics}};
  out["own machine"] = fields_of(own);
  for (size_t i = 0; i < programs.size(); ++i) {
    std::string part = "program " + programs[i].path;
    while (out.count(part)) part += " (again)";
    out[part] = fields_of(programs[i]);
    out[part].emplace_back("place", std::to_string(i));
  }
  out["kernel options"] = {{"is", short_of(kernel_options)}};
  out["lab"] = {{"is", yes(lab)}};
  if (gpu_results) out["GPU results"] = fields_of(*gpu_results);
  return out;
}

std::vector<std::string> changed_inputs(const PlannedInputs& before, const PlannedInputs& now) {
  std::vector<std::string> out;
  for (const auto& [part, fields] : now) {
    const auto was = before.find(part);
    if (was == before.end())
      out.push_back(part + ": it is new");
    else
      compare(part, was->second, fields, out);
  }
  for (const auto& [part, fields] : before)
    if (!now.count(part)) out.push_back(part + ": it no longer exists");
  return out;
}

std::string in_one_line(const std::vector<std::string>& changed) {
  std::string out;
  for (size_t i = 0; i < std::min(changed.size(), kInOneLine); ++i) out += (i ? "; " : "") + changed[i];
  if (changed.size() > kInOneLine) out += fmt::format("; and {} more", changed.size() - kInOneLine);
  return out;
}

std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at) {
  std::set<std::string> out;
  for (const auto& [slot, began] : written)
    if (began >= seen_at) out.insert(slot);
  return out;
}

std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written) {
  if (written.count("")) return std::nullopt;
  for (const auto& slot : written) facts.boot.slots[slot].stage = "writing";
  return facts;
}

void add_facts(NodeObservation& seen, const std::string& node, const LookedAt& at) {
  if (at.facts.empty()) return;
  const auto facts = at.facts.facts();
  if (!facts)
    return log::warning("the stored facts cannot be read: the node is treated as never seen",
                        {{"node", node}});
  seen.machine = *facts;
  seen.facts = still_known(*facts, at.written);
}

PlannerInput planner_input(const PlanningSnapshot& snapshot) {
  PlannerInput in = snapshot.in;
  in.spec = snapshot.spec->spec;
  in.revision = snapshot.spec->revision;
  if (const auto& batch = in.request.batch) {
    in.spec.limits.drain_timeout = batch->drain_timeout;
    in.spec.limits.trial = batch->trial;
    in.spec.limits.failure_budget = batch->failure_budget;
  }
  in.playbooks = snapshot.playbooks->all;
  for (const auto& [name, at] : snapshot.looked_at) add_facts(in.nodes[name], name, at);
  return in;
}

}  // namespace muster
