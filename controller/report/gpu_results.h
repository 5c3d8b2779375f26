// What GPUs were proven to reach: read from a signed report (`acceptance: { gpu: mandatory }`).
//
// A report counts when its signature is that of the given key and it is not one of simulated hardware; only
// nodes that were handed over, GPUs that are not SIMULATED, and values that passed count from it. Nothing is
// known about a model that no such GPU has. Thread: pure functions; the caller provides the cryptography.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace muster {

// Below this part of what others of its model reached, a GPU is broken. Healthy ones of one model lie within
// some 5 % of their median; slower is degraded (the profile's ratio) before it is this.
constexpr double kProvenFail = 0.85;

struct ProvenSpeed {
  double value = 0;  // median
  int gpus = 0;
};
struct GpuResults {
  std::string digest = {};  // of the report
  // model as the driver reports it -> "gpu bf16/tflops" -> what healthy ones reached
  std::map<std::string, std::map<std::string, ProvenSpeed>> models = {};
};

// Whether `value` (base64) is the Ed25519 signature of `body` by the key in PEM form: base/pki.h's.
using SignatureCheck =
    std::function<bool(const std::string& public_pem, const std::string& body, const std::string& value)>;

// `text`: report.json as it was signed; `public_pem`: the key to trust, as `muster report key` prints it.
// Code::invalid with what is missing or wrong.
Result<GpuResults> read_gpu_results(const std::string& text, const std::string& public_pem,
                                    const SignatureCheck& check);

}  // namespace muster
