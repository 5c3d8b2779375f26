// Which playbooks install NVIDIA's driver and CUDA, and what a driver's version says of its branch. The one
// place that lists these playbooks. Pure functions, no I/O.
//
// A user writes the driver's full version (`nvidia_driver: 580.95.05`); its branch (`nvidia_branch`), which
// is part of package names, follows from it. Of a distribution's own archive only the branch can be chosen.
#pragma once

#include <map>
#include <string>

#include "controller/spec/variables.h"

namespace muster {

// True for a playbook that installs the driver.
bool installs_gpu_driver(const std::string& playbook);
// Those that install the driver, or what GPU programs need: "`gpu` or `gpu-vendor`".
std::string gpu_driver_playbooks();
std::string cuda_playbooks();
// What two playbooks would both install: "NVIDIA's driver", "CUDA"; "" if they go together.
std::string both_install(const std::string& playbook, const std::string& other);

// "580.95.05" and "595.84" -> "580" and "595"; "" for anything else.
std::string driver_branch(const std::string& version);

// Adds to `vars` the branch of its driver. `of_all`: the variables that apply where `vars` has none.
WrongVariable complete_driver_variables(std::map<std::string, std::string>& vars,
                                        const std::map<std::string, std::string>& of_all);

}  // namespace muster
