#include "agent/joining/adopting.h"

#include "agent/joining/adopt.h"
#include "agent/joining/preview.h"
#include "base/digest.h"
#include "base/json_dump.h"

namespace muster {
namespace {

// Maximum length of a request: it may contain a plan's steps, with the content of the files they write.
constexpr size_t kLongestLine = 64u << 20;

Result<Json> answer_to(const Adopting& host, const std::string& line) {
  TRY(Json requested, parse_json(line));
  if (!requested.is_object()) return fail(Code::invalid, "standard input: expected an object");
  const Json what = requested.value("ask", Json());
  if (what == "nothing") return Json::object();
  requested.erase("ask");
  if (what == "look") {
    TRY(const PreviewRequest request, preview_request(dump_json(requested)));
    return preview(host.files, host.process, request);
  }
  if (what == "join") {
    TRY(const BootParameters boot, join_parameters(dump_json(requested)));
    TRY(const std::string node, host.join(boot));
    return Json{{"node", node}};
  }
  return fail(Code::invalid, "standard input: ask: expected \"look\", \"join\" or \"nothing\"");
}

}  // namespace

void answer_adopter(const Adopting& host, std::istream& in, std::ostream& out) {
  const auto say = [&out](const Json& words) { out << dump_ascii(words) << '\n' << std::flush; };
  say({{"ready", true}});
  for (std::string line; std::getline(in, line);) {
    const auto answer = line.size() > kLongestLine
                            ? Result<Json>(fail(Code::invalid, "standard input: the line is too long"))
                            : answer_to(host, line);
    if (answer.ok())
      say(*answer);
    else
      say({{"error",
            {{"code", std::string(to_string(answer.error().code))}, {"message", answer.error().message}}}});
  }
}

Status settle_program(const Files& files) {
  TRY(const std::string program, files.read("/proc/self/exe"));
  const auto there = files.read(kAgentProgram);
  if (there.ok() && sha256(*there) == sha256(program)) return Ok{};
  return files.write(kAgentProgram, program, 0755);
}

}  // namespace muster
