// Services: the objects that handlers of the HTTP API may use. Owned by Daemon (controller/daemon.cc).
// Thread: the reactor's, except `options`, which never changes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "controller/options/options.h"

namespace muster {

namespace api {
class ArchiveAnswers;
}
class Authority;
class BootService;
class Bringup;
class CurrentCauses;
class CurrentSpec;
class Discovery;
class DoctorService;
class EventLog;
class Executor;
class ImageService;
class LinkHub;
class MetricsService;
class NodesView;
class NoticeService;
class PowerService;
class RealReactor;
class RolloutService;
class Store;
class Vault;

struct Services {
  const DaemonOptions& options;
  Authority& authority;
  RealReactor& reactor;
  Store& store;
  CurrentSpec& spec;
  EventLog& events;
  LinkHub& link;
  BootService& boot;
  PowerService& power;
  Vault& vault;
  ImageService& images;
  Bringup& bringup;    // plans, and runs from approved ones
  Executor& executor;  // the active run and the nodes' rows
  RolloutService& rollout;
  NoticeService& notices;
  api::ArchiveAnswers& archive;
  Discovery& discovery;  // undeclared machines
  MetricsService& metrics;
  // Problems of the controller itself: topic ("dhcp", "listen") -> text; empty: none.
  std::map<std::string, std::string>& problems;
  const NodesView& nodes;               // as operators see them
  CurrentCauses& causes;                // of all that is wrong now
  const std::function<void()>& reopen;  // opens ports again whose keys or addresses have changed
  DoctorService& doctor;
};

}  // namespace muster
