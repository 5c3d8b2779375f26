// What acceptance must know of NVIDIA's GPU models to read their health: whether their memory has ECC, which
// NVLink they have, and whether all its links are used. By the driver's name of the GPU; a model that is not
// listed is unknown, never like another. Thread safety: constant tables.
#pragma once

#include <string>

namespace muster {

// Its memory is HBM, which has ECC in every product: there is no reason to switch it off.
bool has_hbm(const std::string& model);

// The generation of NVLink, 3 for A100 to 5 for Blackwell; 0: unknown, or none.
int nvlink_generation(const std::string& model);

// On an SXM or GB board of four or eight, where every link of every GPU leads to another GPU or to an
// NVSwitch. On cards (PCIe, NVL) only bridged links are up.
bool uses_every_link(const std::string& model);

}  // namespace muster
