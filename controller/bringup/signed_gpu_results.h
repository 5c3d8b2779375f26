// The signed results with which a spec requires its GPUs to be compared. Thread safety: stateless functions.
#pragma once

#include <optional>

#include "base/result.h"
#include "controller/report/gpu_results.h"
#include "controller/spec/spec.h"
#include "sys/pki.h"

namespace muster {

// nullopt for a spec without `gpu: mandatory`; Code::invalid, with the spec key and the error, if the file,
// its signature or its content is invalid.
inline Result<std::optional<GpuResults>> gpu_results_of(const Spec& spec) {
  const GpuAcceptance& wanted = spec.gpu_acceptance;
  if (!wanted.mandatory) return std::optional<GpuResults>();
  const auto verify = [](const std::string& pem, const std::string& body, const std::string& value) {
    return pki::verify(pem, body, value).value_or(false);
  };
  TRY(auto results, read_gpu_results(wanted.results, wanted.key, verify));
  return std::optional<GpuResults>(std::move(results));
}

}  // namespace muster
