#include "base/wire.h"

namespace muster::wire {
namespace {

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

// An order with its kind as text, of which later versions have more.
struct OrderText {
  std::string kind = {};
  WorkOrder order = {};
};
struct Needs {
  std::vector<std::string> needs = {};
};

MUSTER_RECORD(JoinRequest, lenient, version, node, token, as(csr_pem, "csr"), boot_id, mode,
              opt(product_uuid), opt(macs))
MUSTER_RECORD(JoinReply, lenient, node, as(certificate_pem, "certificate"), as(ca_pem, "ca"))
MUSTER_RECORD(WorkOrder, lenient, id, params, as(deadline, "deadline_ms"), sparse(preconditions),
              sparse(secrets))
MUSTER_RECORD(OrderText, kind, flat(order))
MUSTER_RECORD(PollReply, lenient, orders, opt(withdrawn), sparse(renew))
MUSTER_RECORD(Event, lenient, seq, opt(time), opt(order), kind, data)
MUSTER_RECORD(EventBatch, lenient, boot_id, incarnation, events)
MUSTER_RECORD(Needs, lenient, needs)
MUSTER_RECORD(Step, id, module, params, opt(phase), sparse(verify), sparse(expect), opt(mandatory))
MUSTER_RECORD(JobDisk, as(serial, "disk_serial"), opt(wwid, "disk_wwid"), opt(model, "disk_model"),
              as(size_bytes, "disk_size_bytes"))
MUSTER_RECORD(ImageJob, image, digest, manifest_path, base_url, flat(disk), opt(content_hash),
              opt(allow_ours), opt(cluster), opt(authority), hostname, address_cidr, mac, opt(gateway),
              sparse(dns), sparse(search), controller_url, opt(console), opt(kernel_options), opt(root_size))
MUSTER_RECORD(SlotProgram, path, sha256, size, opt(mode))
MUSTER_RECORD(SlotJob, image, slot, programs, opt(bytes_per_second))
MUSTER_RECORD(BootSlotJob, slot, digest, trial)
MUSTER_RECORD(KexecJob, base_url, kernel_path, kernel_sha256, initrd_path, initrd_sha256, arguments, mac,
              opt(gateway), address_cidr)

Json to_json(const JoinRequest& m) { return record_json(m); }
Json to_json(const JoinReply& m) { return record_json(m); }
Json to_json(const PollReply& m) { return record_json(m); }
Json to_json(const Event& m) { return record_json(m); }
Json to_json(const EventBatch& m) { return record_json(m); }
Json to_json(const ImageJob& j) { return record_json(j); }
Json to_json(const SlotJob& j) { return record_json(j); }
Json to_json(const BootSlotJob& j) { return record_json(j); }
Json to_json(const KexecJob& j) { return record_json(j); }

Result<JoinReply> join_reply_from_json(const Json& j) { return read_record<JoinReply>(j, "join reply"); }
Result<PollReply> poll_reply_from_json(const Json& j) { return read_record<PollReply>(j, "orders"); }
Result<Event> event_from_json(const Json& j) { return read_record<Event>(j, "event"); }
Result<EventBatch> event_batch_from_json(const Json& j) { return read_record<EventBatch>(j, "events"); }
Result<ImageJob> image_job_from_json(const Json& j) { return read_record<ImageJob>(j, "image job"); }
Result<KexecJob> kexec_job_from_json(const Json& j) { return read_record<KexecJob>(j, "kexec job"); }

Result<JoinRequest> join_request_from_json(const Json& j) {
  TRY(auto m, read_record<JoinRequest>(j, "join"));
  if (m.version != kVersion)
    return fail(Code::invalid, "join: the agent's protocol version is " + std::to_string(m.version) +
                                   ", the controller's is " + std::to_string(kVersion));
  return m;
}

Json to_json(const WorkOrder& m) {
  Json out = record_json(m);
  out["kind"] = m.kind_word();
  return out;
}

Result<WorkOrder> work_order_from_json(const Json& j) {
  TRY(OrderText read, read_record<OrderText>(j, "order"));
  WorkOrder& order = read.order;
  order.kind = order_kind_from_string(read.kind);
  if (order.kind == OrderKind::unknown) order.unknown_kind = std::move(read.kind);
  return std::move(order);
}

Status read_own(const Json& j, WorkOrder& out) {
  TRY(out, work_order_from_json(j));
  return Ok{};
}

static constexpr const char* kNeeds = "needs";  // in a step's `expect`

Json to_json(const Step& s) {
  Json out = record_json(s);
  if (!s.needs.empty()) out["expect"][kNeeds] = s.needs;
  return out;
}

Result<Step> step_from_json(const Json& j) {
  TRY(auto s, read_record<Step>(j, "step"));
  if (!s.expect.is_object() || !s.expect.contains(kNeeds)) return s;
  TRY(auto needs, read_record<Needs>(s.expect, "step.expect"));
  s.needs = std::move(needs.needs);
  s.expect.erase(kNeeds);
  if (s.expect.empty()) s.expect = nullptr;
  return s;
}

Status read_own(const Json& j, Step& out) {
  TRY(out, step_from_json(j));
  return Ok{};
}

Result<SlotJob> slot_job_from_json(const Json& j) {
  TRY(auto m, read_record<SlotJob>(j, "slot job"));
  if (m.slot != "a" && m.slot != "b") return fail(Code::invalid, "slot job.slot: expected a or b");
  return m;
}

Result<BootSlotJob> boot_slot_job_from_json(const Json& j) {
  TRY(auto m, read_record<BootSlotJob>(j, "boot slot job"));
  if (m.slot != "a" && m.slot != "b") return fail(Code::invalid, "boot slot job.slot: expected a or b");
  if (m.trial <= 0) return fail(Code::invalid, "boot slot job.trial: expected a time above 0");
  return m;
}

}  // namespace muster::wire
