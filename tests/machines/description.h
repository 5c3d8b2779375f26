// Descriptions of machine types as public reports show them: tests/machines/NAME.yaml, over parts.yaml.
//
//   source     where the values are from
//   system, cpu, memory   as in parts.yaml, whose `machine` has the defaults
//   devices    a list. `like: PART` takes the keys of that part in parts.yaml. With `at` (a list of PCI
//              addresses) or `count` one entry is several devices: `each: {KEY: [...]}` has their own values,
//              and {i} in a text is the index from `first` (0) on. Kinds:
//                gpu     id, model, links (NVLink), link, numa
//                port    a PCI function of a network adapter; `net`: its interface, `rdma`: its RDMA device
//                drive   bus nvme, sata or usb; model, gb, reads (MB/s)
//                net     an interface without a function of its own: virtual (bond, VLAN), on USB, or a
//                        representor (`of`: the address of the function that shows it)
//                pci     anything else: id, class
//              `product`, `vpd`: name and vendor's field of its vital product data.
//              `under`: the upstream port of the switch above it. `link`, `max`, `slot`: [lanes, GT/s] of the
//              trained link, of the device, of the port above it.
//   engines    container engines and their versions; they give containers all devices but those in `hidden`
//   measured   what the loads print; those of a port, a drive or a GPU are with the device
//   expect     what a report has to say (statements of tests/machines/play.h), `parts` the devices that count
//   today      {healthy: [...], fault: [...]}: how the present answer differs, "+ said", "- not said"
//   fault      `nodes` (default: the second of three; all), `devices: {ADDRESS: patch}`, `machine: patch`,
//              `during`: what counts up under load (files, log, nvml); `finds`: what the report has to say
//
// A patch replaces keys, recursively; null removes. Thread safety: values and stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace muster::machines {

// All that are described, by name.
std::vector<std::string> described();
// With all defaults. Fails the test where it cannot be read.
Json description(const std::string& name);
// `over` on top of `base`, as patches are applied.
Json patched(Json base, const Json& over);
// The machine as node `number` (from 1) has it, with the fault if it is one of its nodes: `devices` is then
// one entry per device.
Json node_of(const Json& machine, int number, bool faulty);

// As Json::value(), with the path of keys "a/b"; null where it is absent.
const Json& at(const Json& json, const std::string& path);
std::string text(const Json& json, const std::string& path, const std::string& otherwise = "");
double real(const Json& json, const std::string& path, double otherwise = 0);
int whole(const Json& json, const std::string& path, int otherwise = 0);

}  // namespace muster::machines
