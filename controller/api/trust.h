// Who is behind a request, by what its header shows: the operator's token, or an agent's certificate that is
// good.
//
// Thread: any. The servers ask before a body is read (base/http.h, Trust), dispatch() asks before a handler
// runs.
#pragma once

#include <functional>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "controller/store/store.h"

namespace muster::api {

// Is the operator's token in its header?
bool shows_token(const HttpRequest& request, const std::string& token);

// denied, and why: the certificate of this request does not speak for the node that it names. `row`: what the
// store has under its number.
Status check_certificate(const HttpRequest& request, const Result<CertificateRow>& row);

// A certificate of our CA makes nobody known: it may be revoked, in dispute, or that of a machine nobody
// declared (a guest).
Trust trust_of(const HttpRequest& head, const std::string& operator_token,
               const std::function<Result<CertificateRow>(const std::string& serial)>& find);

}  // namespace muster::api
