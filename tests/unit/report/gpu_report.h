// Signed reports of nodes with H100s, made up.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/report.h"
#include "controller/report/signature.h"
#include "sys/pki.h"

namespace muster::testing {

inline const char* kH100 = "NVIDIA H100 80GB HBM3";
// What profile `quick` asks of a GPU.
inline const char* kQuickSpeeds[] = {"gpu bf16/tflops", "gpu memory/copy_gbps", "gpu memory/triad_gbps"};

struct GpuSigner {
  pki::KeyPair pair = pki::make_signing_key().value();
  std::string sign(const std::string& body) const {
    return sign_block(body, key_line(pair.certificate_pem).value(), pki::sign(pair.key_pem, body).value());
  }
};

// One GPU for each value, which is what each of its speeds is.
inline NodeReport gpu_node(const std::string& name, const std::vector<double>& values) {
  NodeReport out;
  out.name = name;
  out.verdict = NodeVerdict::accepted;
  HardwareFacts facts;
  for (size_t i = 0; i < values.size(); ++i) {
    GpuFacts gpu;
    gpu.model = kH100;
    gpu.uuid = fmt::format("GPU-{}-{}", name, i);
    facts.gpus.push_back(gpu);
    for (const char* speed : kQuickSpeeds) {
      Check check;
      check.name = speed;
      check.subject = gpu.uuid;
      check.verdict = Verdict::pass;
      check.measured = values[i];
      out.checks.push_back(check);
    }
  }
  out.facts = to_json(facts);
  return out;
}

inline Report gpu_report(const std::vector<double>& values) {
  Report out;
  out.cluster = "proven";
  out.kind = "accept";
  out.run = 3;
  out.nodes.push_back(gpu_node("gpu01", values));
  return out;
}

}  // namespace muster::testing
