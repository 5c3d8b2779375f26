#include "controller/spec/apt_origin.h"

#include "controller/spec/address.h"

namespace muster {
namespace {

constexpr const char* kInPath = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._~+%-";

// Returns the position after "http://" or "https://"; 0 if the URL begins with neither.
size_t behind_scheme(const std::string& url) {
  return url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
}

}  // namespace

std::string apt_path(const Distribution& distribution) {
  return distribution.id == default_distribution().id ? "network.apt" : "network.apt." + distribution.id;
}

std::string url_host(std::string url) {
  const size_t scheme = behind_scheme(url);
  if (scheme == 0) return "";
  url.erase(0, scheme);
  if (!url.empty() && url.back() == '/') url.pop_back();
  const size_t colon = url.find(':');
  if (colon != std::string::npos) {
    const std::string port = url.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(port) > 65535 || std::stoi(port) == 0)
      return "";
    url.erase(colon);
  }
  return parse_ipv4(url) || is_dns_name(url) ? url : "";
}

std::string mirror_host(const std::string& url) {
  const size_t scheme = behind_scheme(url);
  if (scheme == 0) return "";
  const size_t slash = url.find('/', scheme);
  const std::string path = slash == std::string::npos ? "" : url.substr(slash);
  if (path.find_first_not_of(kInPath) != std::string::npos || path.find("..") != std::string::npos) return "";
  return url_host(url.substr(0, slash));
}

}  // namespace muster
