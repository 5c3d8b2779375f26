// The identity behind a request, from its header: the operator's token, or a valid agent's certificate.
//
// Thread: any. Checked by the servers before a body is read (base/http.h, Trust), by dispatch() before a
// handler runs.
#pragma once

#include <functional>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "controller/store/store.h"

namespace muster::api {

// Is the operator's token in its header?
bool shows_token(const HttpRequest& request, const std::string& token);

// denied, with the reason: the certificate of this request is not valid for the node that it names. `row`:
// the store's record of its serial number.
Status check_certificate(const HttpRequest& request, const Result<CertificateRow>& row);

// A certificate of our CA alone is not enough: it may be revoked, contested, or that of an undeclared machine
// (a guest).
Trust trust_of(const HttpRequest& head, const std::string& operator_token,
               const std::function<Result<CertificateRow>(const std::string& serial)>& find);

}  // namespace muster::api
