// The speeds that GPUs were proven to reach, read from a signed report (`acceptance: { gpu: mandatory }`).
//
// A report counts if it is signed with the given key and is not about simulated hardware. A value in it
// counts if it passed, on an accepted or degraded node, for a GPU that is not SIMULATED. A model without such
// a value is unknown. Thread safety: stateless functions; the caller provides the cryptography.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace muster {

// A GPU below this fraction of what others of its model reached is broken. Healthy GPUs of one model are
// within about 5 % of their median; a slower one first becomes degraded (the profile's ratio).
constexpr double kProvenFail = 0.85;

struct ProvenSpeed {
  double value = 0;  // median
  int gpus = 0;
};
struct GpuResults {
  std::string digest = {};  // of the report
  // model as the driver reports it -> "gpu bf16/tflops" -> what healthy GPUs of this model reached
  std::map<std::string, std::map<std::string, ProvenSpeed>> models = {};
};

// True if `value` (base64) is the Ed25519 signature of `body` by the key in PEM form; see sys/pki.h.
using SignatureCheck =
    std::function<bool(const std::string& public_pem, const std::string& body, const std::string& value)>;

// `text`: report.json as it was signed; `public_pem`: the key to trust, as `muster report key` prints it.
// Code::invalid with what is missing or wrong.
Result<GpuResults> read_gpu_results(const std::string& text, const std::string& public_pem,
                                    const SignatureCheck& check);

}  // namespace muster
