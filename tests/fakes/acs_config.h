// The configuration space of a bridge with an ACS capability, as `config` in sysfs gives it: 4 KiB, extended
// capabilities from 0x100 on. An AER capability stands before it, as on real root ports.
#pragma once

#include <cstdint>
#include <string>

namespace muster::tests {

constexpr size_t kAcsAt = 0x148;

inline std::string acs_config(uint16_t control, bool with_acs = true) {
  std::string out(4096, '\0');
  const auto put = [&](size_t at, uint32_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  put(0x100, 0x0001u | 2u << 16 | static_cast<uint32_t>(with_acs ? kAcsAt : 0) << 20, 4);
  if (!with_acs) return out;
  put(kAcsAt, 0x000du | 1u << 16, 4);
  put(kAcsAt + 4, 0x001f, 2);
  put(kAcsAt + 6, control, 2);
  return out;
}
inline uint16_t acs_control(const std::string& config) {
  return static_cast<uint16_t>(static_cast<unsigned char>(config[kAcsAt + 6]) |
                               static_cast<unsigned char>(config[kAcsAt + 7]) << 8);
}

}  // namespace muster::tests
