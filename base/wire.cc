#include "base/wire.h"

#include "base/words.h"

namespace muster::wire {

namespace {

constexpr Words<Mode, 3> kModeWords = {
    {{Mode::ram, "ram"}, {Mode::installed, "installed"}, {Mode::adopted, "adopted"}}};
constexpr Words<OrderKind, 10> kOrderWords = {{{OrderKind::inventory, "inventory"},
                                               {OrderKind::image, "image"},
                                               {OrderKind::boot_disk, "boot_disk"},
                                               {OrderKind::steps, "steps"},
                                               {OrderKind::check, "check"},
                                               {OrderKind::reboot, "reboot"},
                                               {OrderKind::power_off, "power_off"},
                                               {OrderKind::kexec, "kexec"},
                                               {OrderKind::write_slot, "write_slot"},
                                               {OrderKind::boot_slot, "boot_slot"}}};

}  // namespace

std::string_view to_string(Mode mode) { return word_of(kModeWords, mode); }

Result<Mode> mode_from_string(std::string_view word) {
  if (const auto mode = value_of(kModeWords, word)) return *mode;
  return fail(Code::invalid, "unknown agent mode '" + std::string(word) + "'");
}

std::string_view to_string(OrderKind kind) { return word_of(kOrderWords, kind); }

OrderKind order_kind_from_string(std::string_view word) {
  return value_of(kOrderWords, word).value_or(OrderKind::unknown);
}

namespace {
Result<Mode> read_mode(JsonReader& r) {
  std::string word;
  r.get("mode", word);
  return mode_from_string(word);
}
}  // namespace

Json to_json(const JoinRequest& m) {
  return {{"version", m.version},
          {"node", m.node},
          {"token", m.token},
          {"csr", m.csr_pem},
          {"boot_id", m.boot_id},
          {"mode", to_string(m.mode)},
          {"product_uuid", m.product_uuid},
          {"macs", m.macs}};
}

Result<JoinRequest> join_request_from_json(const Json& j) {
  JsonReader r(j, "join");
  JoinRequest m;
  r.allow_unknown();
  r.get("version", m.version);
  r.get("node", m.node);
  r.get("token", m.token);
  r.get("csr", m.csr_pem);
  r.get("boot_id", m.boot_id);
  r.get_or("product_uuid", m.product_uuid, std::string());
  r.get_or("macs", m.macs, {});
  const auto mode = read_mode(r);
  TRY_(r.finish());
  TRY(m.mode, mode);
  if (m.version != kVersion)
    return fail(Code::invalid, "join: the agent's protocol version is " + std::to_string(m.version) +
                                   ", the controller's is " + std::to_string(kVersion));
  return m;
}

Json to_json(const JoinReply& m) {
  return {{"node", m.node}, {"certificate", m.certificate_pem}, {"ca", m.ca_pem}};
}

Result<JoinReply> join_reply_from_json(const Json& j) {
  JsonReader r(j, "join reply");
  JoinReply m;
  r.allow_unknown();
  r.get("node", m.node);
  r.get("certificate", m.certificate_pem);
  r.get("ca", m.ca_pem);
  TRY_(r.finish());
  return m;
}

Json to_json(const WorkOrder& m) {
  return {{"id", m.id}, {"kind", m.kind_word()}, {"params", m.params}, {"deadline_ms", m.deadline}};
}

Result<WorkOrder> work_order_from_json(const Json& j) {
  JsonReader r(j, "order");
  WorkOrder m;
  r.allow_unknown();
  std::string kind;
  r.get("id", m.id);
  r.get("kind", kind);
  r.get("deadline_ms", m.deadline);
  m.params = r.raw("params");
  TRY_(r.finish());
  m.kind = order_kind_from_string(kind);
  if (m.kind == OrderKind::unknown) m.unknown_kind = std::move(kind);
  return m;
}

Json to_json(const PollReply& m) {
  Json orders = Json::array();
  for (const auto& order : m.orders) orders.push_back(to_json(order));
  return {{"orders", orders}, {"withdrawn", m.withdrawn}};
}

Result<PollReply> poll_reply_from_json(const Json& j) {
  JsonReader r(j, "orders");
  PollReply m;
  r.allow_unknown();
  const Json orders = r.raw("orders");
  r.get_or("withdrawn", m.withdrawn, std::vector<std::string>());
  TRY_(r.finish());
  if (!orders.is_array()) return fail(Code::invalid, "orders: expected a list");
  for (const auto& element : orders) {
    TRY(auto order, work_order_from_json(element));
    m.orders.push_back(std::move(order));
  }
  return m;
}

Json to_json(const Event& m) {
  return {{"seq", m.seq}, {"time", m.time}, {"order", m.order}, {"kind", m.kind}, {"data", m.data}};
}

Result<Event> event_from_json(const Json& j) {
  JsonReader r(j, "event");
  Event m;
  r.allow_unknown();
  r.get("seq", m.seq);
  r.get_or("time", m.time, TimeMs{0});
  r.get_or("order", m.order, std::string());
  r.get("kind", m.kind);
  m.data = r.raw("data");
  TRY_(r.finish());
  return m;
}

Json to_json(const EventBatch& m) {
  Json events = Json::array();
  for (const auto& e : m.events) events.push_back(to_json(e));
  return {{"boot_id", m.boot_id}, {"incarnation", m.incarnation}, {"events", std::move(events)}};
}

Result<EventBatch> event_batch_from_json(const Json& j) {
  JsonReader r(j, "events");
  EventBatch m;
  r.allow_unknown();
  r.get("boot_id", m.boot_id);
  r.get("incarnation", m.incarnation);
  const Json& events = r.raw("events");
  TRY_(r.finish());
  if (!events.is_array()) return fail(Code::invalid, "events.events: expected a list");
  for (const auto& e : events) {
    TRY(auto event, event_from_json(e));
    m.events.push_back(std::move(event));
  }
  return m;
}

static constexpr const char* kNeeds = "needs";  // in a step's `expect`

Json to_json(const Step& s) {
  Json j = {{"id", s.id},
            {"module", s.module},
            {"params", s.params},
            {"phase", s.phase},
            {"mandatory", s.mandatory}};
  if (!s.verify.is_null()) j["verify"] = s.verify;
  if (!s.expect.is_null()) j["expect"] = s.expect;
  if (!s.needs.empty()) j["expect"][kNeeds] = s.needs;
  return j;
}

Result<Step> step_from_json(const Json& j) {
  JsonReader r(j, "step");
  Step s;
  r.get("id", s.id);
  r.get("module", s.module);
  s.params = r.raw("params");
  r.get_or("phase", s.phase, std::string("node"));
  s.verify = r.raw("verify");
  s.expect = r.raw("expect");
  r.get_or("mandatory", s.mandatory, true);
  TRY_(r.finish());
  if (!s.expect.is_object() || !s.expect.contains(kNeeds)) return s;
  JsonReader needs(s.expect, "step.expect");
  needs.allow_unknown();
  needs.get(kNeeds, s.needs);
  TRY_(needs.finish());
  s.expect.erase(kNeeds);
  if (s.expect.empty()) s.expect = nullptr;
  return s;
}

Json to_json(const ImageJob& j) {
  Json out = {{"image", j.image},
              {"digest", j.digest},
              {"manifest_path", j.manifest_path},
              {"base_url", j.base_url},
              {"disk_serial", j.disk_serial},
              {"disk_wwid", j.disk_wwid},
              {"disk_model", j.disk_model},
              {"disk_size_bytes", j.disk_size_bytes},
              {"content_hash", j.content_hash},
              {"allow_ours", j.allow_ours},
              {"cluster", j.cluster},
              {"authority", j.authority},
              {"hostname", j.hostname},
              {"address_cidr", j.address_cidr},
              {"mac", j.mac},
              {"gateway", j.gateway},
              {"controller_url", j.controller_url},
              {"console", j.console},
              {"kernel_options", j.kernel_options},
              {"root_size", j.root_size}};
  if (!j.dns.empty()) out["dns"] = j.dns;
  if (!j.search.empty()) out["search"] = j.search;
  return out;
}

Result<ImageJob> image_job_from_json(const Json& j) {
  JsonReader r(j, "image job");
  ImageJob m;
  r.get("image", m.image);
  r.get("digest", m.digest);
  r.get("manifest_path", m.manifest_path);
  r.get("base_url", m.base_url);
  r.get("disk_serial", m.disk_serial);
  r.get_or("disk_wwid", m.disk_wwid, std::string());
  r.get_or("disk_model", m.disk_model, std::string());
  r.get("disk_size_bytes", m.disk_size_bytes);
  r.get_or("content_hash", m.content_hash, std::string());
  r.get_or("allow_ours", m.allow_ours, false);
  r.get_or("cluster", m.cluster, std::string());
  r.get_or("authority", m.authority, std::string());
  r.get("hostname", m.hostname);
  r.get("address_cidr", m.address_cidr);
  r.get("mac", m.mac);
  r.get_or("gateway", m.gateway, std::string());
  r.get_or("dns", m.dns, {});
  r.get_or("search", m.search, {});
  r.get("controller_url", m.controller_url);
  r.get_or("console", m.console, std::string());
  r.get_or("kernel_options", m.kernel_options, std::string());
  r.get_or("root_size", m.root_size, std::string());
  TRY_(r.finish());
  return m;
}

Json to_json(const SlotJob& m) {
  Json programs = Json::array();
  for (const auto& p : m.programs)
    programs.push_back({{"path", p.path}, {"sha256", p.sha256}, {"size", p.size}, {"mode", p.mode}});
  return {{"image", to_json(m.image)},
          {"slot", m.slot},
          {"programs", programs},
          {"bytes_per_second", m.bytes_per_second}};
}

Result<SlotJob> slot_job_from_json(const Json& j) {
  JsonReader r(j, "slot job");
  SlotJob m;
  const Json image = r.raw("image"), programs = r.raw("programs");
  r.get("slot", m.slot);
  r.get_or("bytes_per_second", m.bytes_per_second, int64_t{0});
  TRY_(r.finish());
  TRY(m.image, image_job_from_json(image));
  if (!programs.is_array()) return fail(Code::invalid, "slot job.programs: expected a list");
  for (const Json& one : programs) {
    JsonReader p(one, "slot job.programs");
    SlotProgram program;
    p.get("path", program.path);
    p.get("sha256", program.sha256);
    p.get("size", program.size);
    p.get_or("mode", program.mode, int64_t{0755});
    TRY_(p.finish());
    m.programs.push_back(std::move(program));
  }
  if (m.slot != "a" && m.slot != "b") return fail(Code::invalid, "slot job.slot: expected a or b");
  return m;
}

Json to_json(const BootSlotJob& m) { return {{"slot", m.slot}, {"digest", m.digest}, {"trial", m.trial}}; }

Result<BootSlotJob> boot_slot_job_from_json(const Json& j) {
  JsonReader r(j, "boot slot job");
  BootSlotJob m;
  r.get("slot", m.slot);
  r.get("digest", m.digest);
  r.get("trial", m.trial);
  TRY_(r.finish());
  if (m.slot != "a" && m.slot != "b") return fail(Code::invalid, "boot slot job.slot: expected a or b");
  if (m.trial <= 0) return fail(Code::invalid, "boot slot job.trial: expected a time above 0");
  return m;
}

Json to_json(const KexecJob& m) {
  return {{"base_url", m.base_url},
          {"kernel_path", m.kernel_path},
          {"kernel_sha256", m.kernel_sha256},
          {"initrd_path", m.initrd_path},
          {"initrd_sha256", m.initrd_sha256},
          {"arguments", m.arguments},
          {"mac", m.mac},
          {"gateway", m.gateway},
          {"address_cidr", m.address_cidr}};
}
Result<KexecJob> kexec_job_from_json(const Json& j) {
  JsonReader r(j, "kexec job");
  KexecJob m;
  r.get("base_url", m.base_url);
  r.get("kernel_path", m.kernel_path);
  r.get("kernel_sha256", m.kernel_sha256);
  r.get("initrd_path", m.initrd_path);
  r.get("initrd_sha256", m.initrd_sha256);
  r.get("arguments", m.arguments);
  r.get("mac", m.mac);
  r.get_or("gateway", m.gateway, std::string());
  r.get("address_cidr", m.address_cidr);
  TRY_(r.finish());
  return m;
}

}  // namespace muster::wire
