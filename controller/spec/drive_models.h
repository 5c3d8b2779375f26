// The speeds of drive models according to their makers: the shipped table (hardware/drives.yaml, part of the
// program) and the lines that a spec puts before it. Acceptance derives floors from it (controller/report/
// drive_floors.h). Thread: pure functions.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/spec.h"
#include "controller/spec/yaml.h"

namespace muster {

// The lines of a list that the schema has accepted. Errors: a pattern that matches nothing or comes after one
// that matches all of its drives, and a line without a figure.
std::vector<DriveModel> read_drive_models(const YamlNode& list, const std::string& path,
                                          std::vector<SpecError>& errors);

const std::vector<DriveModel>& shipped_drive_models();

// The models that apply to a cluster, the spec's own first. For simulated hardware, only the spec's.
std::vector<DriveModel> drive_models_of(const Spec& spec);

// The first that matches; null: none.
const DriveModel* find_drive_model(const std::vector<DriveModel>& table, const std::string& model);

namespace embedded {  // generated at build time from hardware/drives.yaml
extern const char* const drive_models;
}  // namespace embedded

}  // namespace muster
