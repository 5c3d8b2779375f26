// AgentJournal in a file: one JSON record per line, rewritten whole and atomically (Files::write syncs),
// newest 256 orders kept.
//
// Owned by agent/main.cc. Installed system: /state/muster/journal; RAM system: a path in its root, which is
// lost when it ends. Thread: the reactor's. append() writes before it returns; `done` is posted.
#pragma once

#include <string>
#include <vector>

#include "agent/core/journal.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster {

class FileJournal : public AgentJournal {
 public:
  FileJournal(Reactor& reactor, const Files& files, std::string path);
  Result<std::vector<OrderRecord>> load() override;
  void append(const OrderRecord& record, Done done) override;

 private:
  void keep(const OrderRecord& record);

  Reactor& reactor_;
  const Files& files_;
  std::string path_;
  std::vector<OrderRecord> records_;  // the newest record of each order, oldest order first
};

}  // namespace muster
