// The speeds of drive models according to their makers: the shipped table (hardware/drives.yaml, part of the
// program), preceded by the lines of the spec. Acceptance derives floors from it (controller/report/
// drive_floors.h). Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/spec.h"
#include "controller/spec/yaml.h"

namespace muster {

// Reads the lines of a list that the schema has accepted. Errors: a pattern that matches nothing or follows
// one that matches all of its drives, and a line without a speed.
std::vector<DriveModel> read_drive_models(const YamlNode& list, const std::string& path,
                                          std::vector<SpecError>& errors);

const std::vector<DriveModel>& shipped_drive_models();

// Returns the models for a cluster, the spec's own first; for simulated hardware, only the spec's own.
std::vector<DriveModel> drive_models_of(const Spec& spec);

// Returns the first line that matches; null if none does.
const DriveModel* find_drive_model(const std::vector<DriveModel>& table, const std::string& model);

namespace embedded {  // generated at build time from hardware/drives.yaml
extern const char* const drive_models;
}  // namespace embedded

}  // namespace muster
