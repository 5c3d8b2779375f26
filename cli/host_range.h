// Ranges in a list of hosts, as the tools of clusters write them. No I/O.
//
//     gpu[01-03,07]      Slurm, pdsh, clush: numbers with the digits that were written
//     rack[1-2]n[01-16]  several brackets: all of them together, the last one fastest
//     n[0-30/2]          clush: every second one
//     web[01:16:2], db[a:f]  Ansible: the same with colons, and letters
//
// Brackets around an IPv6 address are no range.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/units.h"

namespace muster::cli {

// `number`: the one of the brackets, if there is one pair with numbers; else -1. Code::invalid, with what is
// wrong: a bracket that is not closed, no range in it, more than kMostSpecNodes names.
Result<std::vector<RangedName>> expand_host_range(const std::string& pattern);

bool has_host_range(const std::string& pattern);

// The text between commas that are outside of brackets; empty pieces are left out.
std::vector<std::string> split_host_list(const std::string& list);

// How long the text is without what stands in brackets.
size_t length_outside_brackets(const std::string& pattern);

}  // namespace muster::cli
