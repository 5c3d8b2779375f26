// Whether the mirrors that images are built from answer and have all that goes into the images: the Release
// file of every pocket, their signatures and package lists, and the packages with what these depend on.
//
// apt decides, in a folder of its own with an empty system and none of this machine's settings, as mmdebstrap
// does. Packages of repositories that a layer's steps add are not looked for. Installs nothing. Thread:
// blocking, for at most the limit; for worker threads.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/steady.h"
#include "controller/image/image.h"
#include "sys/os.h"

namespace muster {

struct MirrorLookParts {
  std::string folder;  // apt's, in a folder that only root enters; it is removed before and afterwards
  const Files& host;   // this machine
  Process& process;
  std::function<SteadyMs()> now;
};

// By the image's name: "" if its mirror is complete, else what it lacks, a line each. An Error: not looked
// at; `timeout` where `limit`, which is for all images together, was over.
std::map<std::string, Result<std::string>> look_at_mirrors(const std::vector<ImageRequest>& images,
                                                           const MirrorLookParts& parts, DurationMs limit);

}  // namespace muster
