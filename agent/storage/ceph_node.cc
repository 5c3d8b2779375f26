#include "agent/storage/ceph_node.h"

#include <fmt/format.h>

#include <cctype>

#include "agent/steps/files/file_modules.h"
#include "base/json_at.h"

namespace muster::steps {

Part ceph_folder(const std::string& path) {
  return {directory_module(), {{"path", path}, {"mode", "0750"}, {"owner", kCephUser}, {"group", kCephUser}}};
}
Part ceph_keyring(const std::string& path, const std::string& who, const std::string& key) {
  return {file_module(),
          {{"path", path},
           {"mode", "0600"},
           {"owner", kCephUser},
           {"group", kCephUser},
           {"content", fmt::format("[{}]\n\tkey = {}\n", who, key)}}};
}
Status give_to_ceph(StepContext& context, const std::string& path) {
  TRY_(run_tool(context, {"chown", "-R", "ceph:ceph", path}));
  return Ok{};
}

Result<std::string> ceph_key_of(StepContext& context, const std::string& who,
                                const std::vector<std::string>& caps) {
  std::vector<std::string> args = {"auth", caps.empty() ? "get-key" : "get-or-create-key", who};
  args.insert(args.end(), caps.begin(), caps.end());
  TRY(std::string key, ceph_text(context, args));
  while (!key.empty() && isspace(static_cast<unsigned char>(key.back()))) key.pop_back();
  return key;
}

Result<std::vector<CephStore>> ceph_stores(const StepContext& context, const Json& disks) {
  TRY(const auto wanted, wanted_disks({{"disks", disks}}));
  TRY(const auto found, resolve_disks(context.files, wanted));
  std::vector<CephStore> out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.push_back({wanted[i], text_at(disks[i], "uuid"), device_path(found[i].name), found[i]});
    if (out.back().uuid.empty())
      return fail(Code::invalid, "ceph_osds: disk " + wanted[i].serial + " has no `uuid`");
  }
  return out;
}

Result<DiskContent> ceph_content_of(const StepContext& context, const CephStore& store) {
  TRY(const auto device, BlockDevice::open(context.files.real(store.device), BlockDevice::Access::read));
  return probe_disk(device);
}

bool is_ceph_store(const DiskContent& content, const CephStore& store) {
  return content.gpt.partitions.empty() && !content.mbr && content.signatures.size() == 1 &&
         content.signatures[0].start == 0 && content.signatures[0].type == "ceph_bluestore" &&
         content.signatures[0].uuid == store.uuid;
}

}  // namespace muster::steps
