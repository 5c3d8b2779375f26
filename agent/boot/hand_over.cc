#include "agent/boot/hand_over.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "agent/boot/kexec.h"
#include "agent/image/image_job.h"
#include "base/json_dump.h"

namespace muster {
namespace {

Status get_ready(const Files& files, Process& process) {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  TRY(const Json params, parse_json(text));
  TRY(const wire::KexecJob job, wire::kexec_job_from_json(params));
  const auto ready = prepare_kexec({files, process, fetch_from_boot_server, [] { return false; }}, job);
  if (!ready.ok()) {
    forget_kexec(files, process);
    return ready.error();
  }
  fmt::print("{}\n", dump_ascii(*ready));
  return Ok{};
}

}  // namespace

Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path) {
  TRY(const auto source, http_source(base_url));
  return source->whole(path);
}

Status hand_over(bool ready) {
  const Files files;
  const auto process = make_process();
  return ready ? get_ready(files, *process) : leave_by_kexec(files, *process);
}

}  // namespace muster
