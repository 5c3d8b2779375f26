// CarriedPrograms: provides a `check` order's steps with the measuring programs that it names by digest.
//
// A host that muster did not image has none of these programs. The order lists the ones it needs:
//     "programs": [{"name": "muster-accept", "sha256": "<hex>", "size": BYTES}, ...]
// An agent that runs as a service fetches them from the boot HTTP server into /usr/lib/muster; an agent
// started over SSH (`muster accept --hosts`) fetches them over its pipe into memory. An existing program with
// that digest is not fetched again. An order without "programs" uses those of its image. Thread: the
// worker's; may block for minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/image/blobs.h"
#include "base/json.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

struct CarriedProgram {
  std::string name;    // "muster-accept"; only letters, digits, '-' and '_'
  std::string sha256;  // hexadecimal, of the file
  int64_t size = 0;    // bytes
};

// invalid: wrong format, or a name that is not a plain file name.
Result<std::vector<CarriedProgram>> carried_programs_of(const Json& order_params);

class CarriedPrograms {
 public:
  virtual ~CarriedPrograms() = default;
  // name -> path of an executable file, valid while this object lives. not_found: the controller does
  // not serve that digest; corrupt: the digest of the received file differs; cancelled.
  virtual Result<std::map<std::string, std::string>> ready(const std::vector<CarriedProgram>& programs,
                                                           const std::function<bool()>& cancelled) = 0;
};

// Fetches from the boot HTTP server. A file with the order's digest is used; otherwise it is replaced as a
// whole, so that a running program continues. Size and digest come from the order, which was received over
// mutual TLS: a name alone is not trusted. `files` must outlive the result.
std::unique_ptr<CarriedPrograms> fetched_programs(const Files& files, MakeSource source,
                                                  WriteOptions options = {});

}  // namespace muster
