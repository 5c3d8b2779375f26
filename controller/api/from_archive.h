// Answers that take long to make, from what is stored of runs: a worker reads, parses and renders it.
#pragma once

#include <functional>

#include "base/http.h"
#include "base/result.h"
#include "controller/api/api.h"
#include "controller/store/store.h"

namespace muster::api {

// Thread: any. Knows nothing of the call, whose parts are the reactor's.
using FromArchive = std::function<Result<HttpResponse>(RunArchive&)>;
void answer_from_archive(const CallPtr& call, FromArchive make);

}  // namespace muster::api
