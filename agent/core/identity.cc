#include "agent/core/identity.h"

#include <map>

#include "base/json_dump.h"
#include "base/record.h"
#include "base/split.h"

namespace muster {

MUSTER_RECORD(AgentConfig, lenient, node, url, ca_pin, opt(mode))

Result<AgentConfig> read_config(const Files& files, const std::string& folder) {
  TRY(const auto text, files.read(folder + "/agent.json"));
  TRY(const auto json, parse_json(text));
  return read_record<AgentConfig>(json, "agent.json");
}

Status write_config(const Files& files, const std::string& folder, const AgentConfig& config) {
  TRY_(files.make_directories(folder, 0700));
  return files.write(folder + "/agent.json", dump_json(record_json(config), 2) + "\n", 0600);
}

Result<Credentials> read_credentials(const Files& files, const std::string& folder) {
  Credentials out;
  TRY(out.key_pem, files.read(folder + "/agent.key"));
  TRY(out.certificate_pem, files.read(folder + "/agent.pem"));
  TRY(out.ca_pem, files.read(folder + "/ca.pem"));
  return out;
}

// Writes the certificate last, because it makes the set complete.
Status write_credentials(const Files& files, const std::string& folder, const Credentials& credentials) {
  TRY_(files.make_directories(folder, 0700));
  TRY_(files.write(folder + "/agent.key", credentials.key_pem, 0600));
  TRY_(files.write(folder + "/ca.pem", credentials.ca_pem, 0644));
  return files.write(folder + "/agent.pem", credentials.certificate_pem, 0644);
}

ImageRecord read_image_record(const Files& files) {
  ImageRecord record;
  const auto text = files.read(kImageRecord);
  if (!text.ok()) return record;
  const auto json = parse_json(*text);
  if (!json.ok() || !json->is_object()) return record;
  record.name = json->value("name", "");
  record.digest = json->value("digest", "");
  record.slot = json->value("slot", "");
  return record;
}

Status write_image_record(const Files& files, const ImageRecord& record) {
  const Json json = {{"name", record.name}, {"digest", record.digest}, {"slot", record.slot}};
  return files.write(kImageRecord, dump_json(json) + "\n");
}

Result<BootParameters> parse_kernel_command_line(const std::string& text) {
  std::map<std::string, std::string> words;
  for (const std::string& word : split_words(text))
    if (const auto equals = word.find('='); equals != std::string::npos)
      words[word.substr(0, equals)] = word.substr(equals + 1);
  BootParameters out{words["muster.url"],  words["muster.pin"], words["muster.token"],
                     words["muster.node"], words["muster.ip"],  words["muster.mac"]};
  for (const char* needed : {"muster.url", "muster.pin", "muster.token", "muster.node"})
    if (words[needed].empty())
      return fail(Code::invalid, std::string(needed) + " is missing from the kernel command line");
  return out;
}

}  // namespace muster
