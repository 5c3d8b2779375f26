// Determines who sent a request from its header: the operator by token, or an agent by its valid certificate.
//
// Thread: any. Checked by the servers before a body is read (sys/http/http.h, Trust), by dispatch() before a
// handler runs.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "controller/ports/store.h"
#include "sys/http/http.h"

namespace muster::api {

bool shows_token(const HttpRequest& request, const std::string& token);

// Checks that the request's certificate is valid for the node that it names; else denied, with the reason.
// `row`: the store's record of its serial number.
Status check_certificate(const HttpRequest& request, const Result<CertificateRow>& row);

// Returns the trust level of a request. A certificate of our CA alone is not enough: it may be revoked,
// contested, or belong to an undeclared machine (a guest).
Trust trust_of(const HttpRequest& head, const std::string& operator_token,
               const std::function<Result<CertificateRow>(const std::string& serial)>& find);

}  // namespace muster::api
