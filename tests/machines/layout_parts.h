// Pieces of a machine's files (tests/machines/layout.h): the tree of files, places on PCI Express,
// processors, modules, ports and drives. Internal to the layout.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/json.h"
#include "tests/catch.h"

namespace muster::machines {

class Tree {
 public:
  explicit Tree(std::string root) : root_(std::move(root)) {}
  // With a newline at its end; parent folders are made.
  void put(const std::string& path, const std::string& content) const;
  void put_bytes(const std::string& path, const std::string& bytes) const;
  void append(const std::string& path, const std::string& line) const;
  std::string get(const std::string& path) const;
  void link(const std::string& path, const std::string& target) const;
  void folder(const std::string& path) const;
  // A link from `path` to `target`, both below the root, as the kernel makes them: relative.
  void link_up(const std::string& path, const std::string& target) const;
  // A sparse file.
  void room(const std::string& path, uint64_t bytes) const;
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

// Where the devices lie below /sys/devices, with the bridges above them.
class Places {
 public:
  Places(const Tree& tree, const Json& node);
  void add(const Json& device);
  // "/sys/devices/pci0000:15/0000:15:01.0/..." of an address that was added.
  std::string folder(const std::string& address) const;
  const Tree& tree() const { return tree_; }
  int next_interface() { return ++interfaces_; }

 private:
  std::string above(const Json& device);
  void bridge(const std::string& folder, const Json& link, bool root_port);
  void function(const std::string& folder, const Json& device);

  const Tree& tree_;
  int sockets_ = 1, interfaces_ = 1;
  std::map<std::string, std::string> folders_;               // by address
  std::map<std::string, std::map<std::string, int>> below_;  // by switch: bus -> number of its port
};

struct MemoryDevice {  // SMBIOS type 17
  unsigned mib = 0, mt_s = 0, type = 0;
  std::string locator = {};
};
std::string memory_device(const MemoryDevice& of);
void write_processors(const Tree& tree, const Json& node);
void add_port(Places& places, const Json& node, const Json& port, int number);
void add_interface(Places& places, const Json& node, const Json& net);
void add_drive(Places& places, const Json& node, const Json& drive, int number);

}  // namespace muster::machines
