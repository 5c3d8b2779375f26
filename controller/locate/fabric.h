// Bad cables, switch ports and switches: which hosts to test with each other so that every cable is used by
// several tests, and which cable explains the failures.
//
// A Fabric lists its parts and every flow that can be tested, with the parts it goes through. Where flows go
// is a fact of the network (forwarding tables, discovered links), never a guess of this code; fat_tree()
// makes one for simulations. The ends of a cable, and the ports it is plugged into, are on the same flows: a
// test cannot tell them apart, so they are named together. distinguishable() computes those sets from the
// flows, it does not assume them. Thread: values and pure functions.
#pragma once

#include <string>

#include "controller/locate/decode.h"
#include "controller/locate/pairing.h"

namespace muster::locate {

struct Flow {
  int from = 0, to = 0;         // hosts; data goes this way
  std::vector<Part> path = {};  // all parts on the way, without repeats
};

struct Fabric {
  int hosts = 0;
  std::vector<std::string> parts = {};  // names: "host07 nic", "leaf1 port 3", "spine2"
  std::vector<Flow> flows = {};         // everything that can be tested
};

// Leaf switches with hosts, each leaf with one cable to each spine; the spine is chosen by the receiver's
// number, as the forwarding tables of InfiniBand do. Flows between all hosts, both ways.
struct FatTree {
  int leaves = 0, hosts_per_leaf = 0, spines = 0;
};
Fabric fat_tree(const FatTree& shape);

// What is computed once from a fabric and shared by all searches in it.
struct Cover {
  std::vector<int> class_of = {};                 // by part: the lowest part of its class
  std::vector<std::vector<size_t>> through = {};  // by part: flows; only for parts that stand for their class
  std::vector<std::vector<Part>> path = {};       // by flow: its path with one part per class
  std::vector<std::vector<Part>> within = {};     // by part: those on every flow through it; see decode()
  std::vector<bool> shared = {};  // by part: holds others (a switch), so may be on several flows at once
  std::vector<std::vector<size_t>> rounds = {};  // flows by number; see below
};
// Rounds of flows in which each host and each cable is used at most once, until every part is on at least
// `times` flows. The flows through a cable have nothing else in common wherever the fabric allows.
Cover edge_cover(const Fabric& fabric, int times, uint64_t seed);

struct FabricTested {
  size_t flow = 0;
  int round = 0;
  bool failed = false;
};
struct FabricProgress {
  std::vector<size_t> next = {};  // flows; empty: finished
  std::vector<std::vector<Part>> guilty =
      {};                                // each the smallest set of parts that the hosts can distinguish
  std::vector<size_t> unexplained = {};  // indexes into the tests
  // Parts that were on tests and never passed one, since each of those had a guilty part on it: not accused,
  // and not cleared either. Behind a dead switch nothing can be told before it is repaired.
  std::vector<Part> hidden = {};
};
// First the cover's rounds, then, for at most `extra` rounds, flows that take each suspect, and each hidden
// part that can be reached another way, through otherwise clean parts.
FabricProgress proceed(const Fabric& fabric, const Cover& cover, const std::vector<FabricTested>& tested,
                       int extra, uint64_t seed);

}  // namespace muster::locate
