#include "controller/power/bmc_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/split.h"
#include "base/utf8.h"

namespace muster {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr int kAnyWindow = 15 + 32;  // zlib detects whether the data is in gzip or zlib format

Result<std::string> unpack(std::string_view packed, size_t most) {
  z_stream stream = {};
  if (inflateInit2(&stream, kAnyWindow) != Z_OK)
    return fail(Code::failed, "not enough memory to decompress the response");
  // The interface of zlib takes a non-const pointer, but zlib does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::array<char, 16384> piece = {};
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > most) return fail(Code::invalid, "too large when decompressed");
  if (state != Z_STREAM_END) return fail(Code::invalid, "compressed, but cannot be decompressed");
  return out;
}

bool control(char c) { return static_cast<unsigned char>(c) < 0x20; }

std::string cleaned(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false, escaped = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const Utf8Character next = read_utf8(text.substr(at));
    const size_t length = next.valid ? next.bytes : 0;
    if (control(c)) {
      // An escape followed by a control character keeps its backslash as text.
      if (quoted) out.append(escaped ? "\\" : "").append(kReplacement);
      if (!quoted && (c == '\n' || c == '\r' || c == '\t')) out += c;
    } else if (length == 0) {
      out.append(escaped ? "\\" : "").append(kReplacement);
    } else {
      out.append(text.substr(at, length));
    }
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = quoted && !escaped && c == '\\';
    at += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace

Result<Json> parse_bmc_json(std::string_view body, const std::string& encoding, size_t most) {
  std::string unpacked;
  if (body.substr(0, kGzip.size()) == kGzip || encoding == "deflate") {
    TRY(unpacked, unpack(body, most));
    body = unpacked;
  }
  auto read = parse_json(body);
  if (!read.ok()) read = parse_json(cleaned(body));
  if (read.ok()) make_printable(*read);
  if (read.ok() || encoding.empty() || encoding == "identity") return read;
  return fail(Code::invalid,
              fmt::format("its Content-Encoding '{}' is not supported, or it is not JSON", encoding));
}

std::string json_text(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& json_at(const Json& json, const std::vector<std::string>& path) {
  static const Json nothing;
  const Json* at = &json;
  for (const std::string& key : path) {
    if (!at->is_object()) return nothing;
    const auto found = at->find(key);
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}

namespace {

constexpr size_t kLongest = 300;  // bytes of a message, and of its id, that are shown

// Parts of message ids for temporary conditions. Dell: data sources (SYS518), the iDRAC (SWC0700) or its
// providers (RAC0508) are not ready yet; all sessions are in use (RAC0218).
constexpr const char* kPassing[] = {"SystemPOST",
                                    "InvalidOperationForSystemState",
                                    "ServiceTemporarilyUnavailable",
                                    "ResourceInUse",
                                    "ResourceInStandby",
                                    "ServiceInUnknownState",
                                    "MaximumSessions",
                                    "ServiceShuttingDown",
                                    "SessionLimitExceeded",
                                    "NotReady",
                                    "SYS518",
                                    "SWC0700",
                                    "RAC0508",
                                    "RAC0218"};
// AMI: the settings are in a different resource, which the message arguments name.
constexpr const char* kMoved = "OperationSupportedInFutureStateURI";

}  // namespace

std::string redfish_path(const std::string& uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return uri;
  const size_t slash = uri.find('/', scheme + 3);
  return slash == std::string::npos ? "/" : uri.substr(slash);
}

RedfishRefusal::RedfishRefusal(const Json& body) {
  const Json& error = json_at(body, {"error"});
  add(json_at(error, {"@Message.ExtendedInfo"}));
  add(json_at(body, {"@Message.ExtendedInfo"}));
  add(json_at(body, {"Messages"}));
  messages_.push_back({json_text(error, "code"), json_text(error, "message"), {}});
}

void RedfishRefusal::add(const Json& list) {
  const auto one = [this](const Json& json) {
    Message message{json_text(json, "MessageId"), json_text(json, "Message"), {}};
    if (message.id.empty()) message.id = json_text(json, "MessageID");
    for (const Json& arg : json_at(json, {"MessageArgs"}))
      if (arg.is_string()) message.args.push_back(arg.get<std::string>());
    if (!message.id.empty() || !message.text.empty()) messages_.push_back(std::move(message));
  };
  if (list.is_object()) one(list);
  if (list.is_array())
    for (const Json& json : list) one(json);
}

std::string RedfishRefusal::text() const {
  const Message& first = messages_.front();
  std::string text = first.text;
  if (text.empty()) text = fmt::format("{}", fmt::join(first.args, ", "));
  if (text.empty()) text = messages_.back().text;
  const std::string id = first.id.empty() ? messages_.back().id : first.id;
  return fmt::format("{}{}{}", first_bytes(id, kLongest), id.empty() || text.empty() ? "" : ": ",
                     first_bytes(text, kLongest));
}

bool RedfishRefusal::passes() const {
  return std::any_of(messages_.begin(), messages_.end(), [](const Message& message) {
    return std::any_of(std::begin(kPassing), std::end(kPassing),
                       [&](const char* part) { return has(message.id, part); });
  });
}

std::string RedfishRefusal::moved_to() const {
  for (const Message& message : messages_) {
    if (!has(message.id, kMoved)) continue;
    for (const std::string& arg : message.args)
      if (const std::string path = redfish_path(arg); path.starts_with("/redfish/")) return path;
  }
  return "";
}

}  // namespace muster
