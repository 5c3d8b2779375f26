#include "controller/api/trust.h"

#include "base/digest.h"
#include "controller/boot/service/boot_service.h"
#include "controller/trust/authority.h"

namespace muster::api {
bool shows_token(const HttpRequest& request, const std::string& token) {
  const auto header = request.headers.find("Authorization");
  const std::string scheme = "Bearer ";
  return header != request.headers.end() && header->second.starts_with(scheme) &&
         constant_time_equal(header->second.substr(scheme.size()), token);
}

Status check_certificate(const HttpRequest& request, const Result<CertificateRow>& row) {
  if (request.peer.empty()) return fail(Code::denied, "an agent's certificate is required");
  if (request.peer_organization != Authority::kAgentOrganization)
    return fail(Code::denied, "the certificate is not an agent's");
  if (!row.ok()) return fail(Code::denied, "unknown certificate");
  if (row->revoked) return fail(Code::denied, "this certificate was revoked");
  if (row->contested)
    return fail(Code::denied,
                "two machines joined as " + row->node + ": both are rejected until the next power-on");
  if (row->node != request.peer) return fail(Code::denied, "this certificate belongs to another node");
  return Ok{};
}

Trust trust_of(const HttpRequest& head, const std::string& operator_token,
               const std::function<Result<CertificateRow>(const std::string& serial)>& find) {
  if (shows_token(head, operator_token)) return Trust::known;
  if (head.peer_serial.empty()) return Trust::unknown;
  if (!check_certificate(head, find(head.peer_serial)).ok()) return Trust::unknown;
  return mac_of_unknown(head.peer).empty() ? Trust::known : Trust::guest;
}

}  // namespace muster::api
