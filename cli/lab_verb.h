// The verb `muster lab`: the virtual cluster (lab/lab.h) on the command line.
//
// Needs no controller. `json` is the program's global --json (each lab verb also takes --json itself); `exit`
// is set to the exit code: 0 done, 1 failed, 2 bad usage or not found, 4 refused. Both must outlive the app's
// parse. Thread: the main thread. `lab ssh` replaces the process.
#pragma once

namespace muster {
class Verb;
}

namespace muster::cli {

void add_lab_verb(Verb& app, const bool& json, int& exit);

}  // namespace muster::cli
