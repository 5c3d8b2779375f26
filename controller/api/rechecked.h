// A responder that checks before each answer, and each piece of a stream, whether its client still has a
// right to it: a certificate, a token or discovery may end while a request waits.
//
// Owns nothing but the responder that it was given. Thread: that of the calls; `refused` runs on it.
#pragma once

#include <functional>
#include <optional>

#include "sys/http/http.h"

namespace muster::api {

// `refused` returns the answer for a client without that right; none: it has it. A stream just ends.
using Refused = std::function<std::optional<HttpResponse>()>;
ResponderPtr rechecked(ResponderPtr to, Refused refused);

}  // namespace muster::api
