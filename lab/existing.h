// What `muster lab up` finds in the lab's folder, and whether it is the lab that is wanted. judge() is pure;
// existing_lab() reads the folder and requests the lab's status. Nothing is changed. The caller holds the
// claim of the lab's namespace (lab/lab_network.h), so that a starting lab is not called partial. Thread
// safety: stateless functions that may block for some seconds; for command-line programs.
#pragma once

#include "base/json.h"
#include "lab/lab.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

enum class Existing {
  none,     // no network namespace is recorded: at most files of a lab that was taken down
  same,     // all of it runs, with the machines and options that are wanted
  other,    // all of it runs, with others
  silent,   // its process runs and does not answer: the machine may be too busy
  partial,  // an interrupted `lab up`, or processes of it have ended
};

struct Found {
  Json status;    // of status() in lab/lab.h; null: no readable lab.json
  Json machines;  // lab.json
  Json summary;   // up.json, which up() writes last; null: it was interrupted
};

Existing judge(const Found& found, const LabSpec& wanted, const UpOptions& options);
Existing existing_lab(const LabDir& dir, const LabSpec& wanted, const UpOptions& options);

}  // namespace muster::lab
