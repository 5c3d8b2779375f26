#include "controller/hosts/host_message.h"

#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "base/record.h"
#include "controller/hosts/lost_reason.h"

namespace muster {

MUSTER_RECORD(HostLooked, lenient, facts, look)
MUSTER_RECORD(HostHello, lenient, version, boot_id, incarnation, machine, hostname, root, how, opt(why_user),
              folder, agent_version, opt(addresses), opt(ssh_server))

namespace {

struct Poll {
  std::vector<std::string> have = {};
  std::string boot = {};
};
MUSTER_RECORD(Poll, lenient, have, boot)

constexpr size_t kDigits = 64, kMostOrders = 1000;

Error no_message(const std::string& what) { return fail(Code::invalid, "the host sent " + what); }

Status read_poll(const Json& json, HostMessage& out) {
  TRY(const Poll poll, read_record<Poll>(json, "poll"));
  const auto& have = poll.have;
  out.present.boot_id = poll.boot;
  if (have.size() > kMostOrders) return fail(Code::invalid, "poll.have: too many orders");
  out.have = {have.begin(), have.end()};
  // The agent of a running host is always in this mode, whatever it reports.
  out.present.mode = wire::Mode::adopted;
  return Ok{};
}

Status read_program(const Json& json, HostMessage& out) {
  if (!json.is_string()) return fail(Code::invalid, "program: not a digest");
  out.program = json.get<std::string>();
  if (out.program.size() == kDigits && out.program.find_first_not_of("0123456789abcdef") == std::string::npos)
    return Ok{};
  return fail(Code::invalid, "program: not a digest");
}

Status read_looked(const Json& json, HostMessage& out) {
  TRY(out.looked, read_record<HostLooked>(json, "looked"));
  for (Json* part : {&out.looked.facts, &out.looked.look}) make_printable(*part);
  if (out.looked.facts.is_object() && out.looked.look.is_object()) return Ok{};
  return fail(Code::invalid, "looked: `facts` and `look` must be objects");
}

Status read_kind(const Json& json, HostMessage& out) {
  if (json.contains("poll")) {
    out.kind = HostMessage::Kind::poll;
    return read_poll(json["poll"], out);
  }
  if (json.contains("post")) {
    out.kind = HostMessage::Kind::post;
    TRY(out.batch, wire::event_batch_from_json(json["post"]));
    return Ok{};
  }
  if (json.contains("program")) {
    out.kind = HostMessage::Kind::program;
    return read_program(json["program"], out);
  }
  if (json.contains("looked")) {
    out.kind = HostMessage::Kind::looked;
    return read_looked(json["looked"], out);
  }
  if (json.contains("alive")) return Ok{};
  return fail(Code::invalid, "unknown kind");
}

}  // namespace

Result<HostMessage> host_message_of(const std::string& line) {
  const auto json = parse_json(line);
  if (!json.ok() || !json->is_object()) return no_message("an invalid message");
  HostMessage out;
  if (const Status read = read_kind(*json, out); !read.ok())
    return no_message("an invalid message: " + read.error().message);
  const auto number = json->find("n");
  if (number != json->end() && number->is_number_unsigned()) out.number = number->get<uint64_t>();
  const bool is_request = out.kind != HostMessage::Kind::alive && out.kind != HostMessage::Kind::looked;
  if (is_request && out.number == 0) return no_message("a request without a number");
  return out;
}

Result<HostHello> host_hello_of(const std::string& text) {
  auto json = parse_json(text);
  if (!json.ok()) return no_message("an invalid hello");
  make_printable(*json);
  auto read = read_record<HostHello>(*json, "hello");
  if (!read.ok()) return no_message("an invalid hello: " + read.error().message);
  const HostHello& hello = *read;
  if (hello.version != 1)
    return no_message("a hello of the unsupported version " + std::to_string(hello.version));
  read->why_user = one_line(hello.why_user);
  return read;
}

Error refusal_of(const std::string& text) {
  const size_t blank = text.find(' ');
  const std::string rest = blank == std::string::npos ? "" : one_line(text.substr(blank + 1));
  return fail(code_from_string(text.substr(0, blank)), rest.empty() ? "no reason was given" : rest);
}

}  // namespace muster
